"""Which ps holds which variable of a user's program, as the hooks in its process tell it."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from trainer.agent.injected import placement


def variable(name: str, on: int, elements: int) -> SimpleNamespace:
    return SimpleNamespace(
        name=f"{name}:0",
        device=f"/job:ps/replica:0/task:{on}/device:CPU:0",
        dtype=SimpleNamespace(size=4),
        shape=SimpleNamespace(num_elements=lambda: elements),
    )


def test_name_task_and_bytes_are_noted() -> None:
    noted: dict[tuple[str, str], int] = {}
    placement.add(noted, [variable("kernel", 1, 10), variable("bias", 0, 2)])
    assert noted == {("kernel", "ps-1"): 40, ("bias", "ps-0"): 8}


def test_what_is_no_variable_on_a_task_disturbs_nobody() -> None:
    noted: dict[tuple[str, str], int] = {}
    local = SimpleNamespace(name="here:0", device="")
    placement.add(noted, [None, object(), local, variable("kernel", 0, 10)])
    assert list(noted) == [("kernel", "ps-0")]


def test_variables_without_end_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement, "MOST_KEPT", 3)
    noted: dict[tuple[str, str], int] = {}
    placement.add(noted, [variable(f"v{number}", 0, 1) for number in range(9)])
    assert len(noted) == 3


def test_they_are_told_once_the_program_has_made_them_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "chief-0.jsonl"
    file.touch()
    monkeypatch.setenv("CLUSTER_KIT_PROGRESS", str(file))
    monkeypatch.setattr(placement, "LOOK_S", 0.0)
    noted = {("bias", "ps-0"): 8}
    looks = iter(range(20))

    def over() -> bool:
        look = next(looks)
        if look in (1, 2):
            noted["kernel", f"ps-{look}"] = 40
        return look == 12

    placement.say(noted, over)
    [event] = map(json.loads, file.read_text().splitlines())
    assert event.pop("time") and event == {
        "event": "placement",
        "variables": [
            {"name": "kernel", "on": "ps-1", "bytes": 40},
            {"name": "kernel", "on": "ps-2", "bytes": 40},
            {"name": "bias", "on": "ps-0", "bytes": 8},
        ],
    }


def test_without_a_progress_file_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLUSTER_KIT_PROGRESS", "/no/such/file")
    placement.append([])
