"""How a program's return code becomes an outcome."""

from __future__ import annotations

import pytest

from trainer.agent.outcome import program_ended


@pytest.mark.parametrize(("number", "name"), [(9, "SIGKILL"), (40, "signal 40")])
def test_a_signal_without_a_name_is_told_by_its_number(number: int, name: str) -> None:
    ended = program_ended(-number)
    assert ended.exit_code == 128 + number
    assert ended.message == f"the program was killed by {name}"
