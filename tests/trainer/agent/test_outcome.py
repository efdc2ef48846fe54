"""How a program's return code becomes an outcome."""

from __future__ import annotations

import pytest

from trainer.agent.outcome import models_in, program_ended


@pytest.mark.parametrize(("number", "name"), [(9, "SIGKILL"), (40, "signal 40")])
def test_a_signal_without_a_name_is_told_by_its_number(number: int, name: str) -> None:
    ended = program_ended(-number)
    assert ended.exit_code == 128 + number
    assert ended.message == f"the program was killed by {name}"


def test_models_and_checkpoints_that_a_program_leaves(tmp_path):
    for name in (
        "saved/saved_model.pb", "saved/variables/variables.index", "logs/a/checkpoint",
        "logs/a/model.ckpt-3.index", "logs/b/checkpoint", "best.keras", ".keras/models/x.h5",
        "cluster-kit-x/y.h5", "tfhub_modules/1/saved_model.pb", "a/b/c/d/deep.h5", "notes.txt",
    ):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    root = str(tmp_path)
    assert models_in(root) == (f"{root}/best.keras", f"{root}/logs/a", f"{root}/saved")
    assert models_in(f"{root}/logs/a") == (f"{root}/logs/a/model.ckpt-3",)
    assert models_in(f"{root}/nothing") == ()
