"""What is printed of a run's figures."""

from __future__ import annotations

from typing import Any

import pytest
import typer

from cluster_kit.cli.verdict_lines import end_with, print_metrics
from cluster_kit.run.outcome import Outcome, TaskOutcome


def printed(capsys: pytest.CaptureFixture[str], **metrics: Any) -> list[str]:
    outcome = Outcome("demo", True, 0, "finished", None, "", "", [], [], {}, metrics, "", "/run")
    print_metrics(outcome)
    return capsys.readouterr().out.splitlines()


def test_a_staleness_where_there_can_be_none_is_not_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert printed(capsys, staleness_max=0, staleness_mean=0.0, updates=5) == ["  updates: 5"]
    assert printed(capsys, loss=None) == ["  loss: nan or infinite"]
    assert printed(capsys, staleness_max=2, staleness_mean=0.4691) == [
        "  staleness max: 2",
        "  staleness mean: 0.4691",
    ]


@pytest.mark.parametrize(
    ("code", "message", "first"),
    [
        (1, "ValueError: no", "failed after 2.0 s, blame chief-0 (exit code 1)"),
        (3, "chief-0 ended with exit code 3", "failed after 2.0 s, blame chief-0"),
        (1, "curl: exit code 127", "failed after 2.0 s, blame chief-0 (exit code 1)"),
        (None, "chief-0 was lost", "failed after 2.0 s, blame chief-0"),
        (0, "chief-0 was late", "failed after 2.0 s, blame chief-0"),
    ],
)
def test_the_exit_code_of_the_task_to_blame_is_printed_once(
    code: int | None, message: str, first: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks = [
        TaskOutcome(name, "chief", 0, "10.0.0.2", [], None, exit_code, 0, False, None, None)
        for name, exit_code in (("worker-0", 7), ("chief-0", code))
    ]
    outcome = Outcome(
        "demo", False, 5, "failed", "chief-0", message, "", [], tasks, {"total": 2.0}, {}, "", "/r"
    )
    with pytest.raises(typer.Exit) as ended:
        end_with(outcome, as_json=False)
    assert ended.value.exit_code == 5
    assert capsys.readouterr().out.splitlines()[:2] == [first, f"  {message}"]


DECIDED = "1 of 2 workers ended well (success = {worker = 0.5})"


@pytest.mark.parametrize(
    ("success", "lines"),
    [
        (True, [f"success in 2.0 s: {DECIDED}", "  everything is in /r"]),
        (False, ["failed after 2.0 s, blame worker-0", f"  {DECIDED}", "  ValueError: no"]),
    ],
)
def test_the_sentence_about_who_decided_is_printed(
    success: bool, lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = Outcome(
        "demo", success, 5, "failed", "worker-0", "ValueError: no", "", [], [], {"total": 2.0}, {},
        "", "/r", decided=f"\x1b[2J{DECIDED}",
    )  # fmt: skip
    with pytest.raises(typer.Exit):
        end_with(outcome, as_json=False)
    assert capsys.readouterr().out.splitlines()[: len(lines)] == lines


def test_an_error_cannot_control_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = Outcome(
        "demo", False, 5, "failed", "chief-0", "\x1b[2JValueError: \x1b[31mno", "\x1b]0;x\x07f.py",
        ["\x1b[1Anote"], [], {"total": 2.0}, {"\x1b[2Jx": 1}, "", "/r",
    )  # fmt: skip
    with pytest.raises(typer.Exit):
        end_with(outcome, as_json=False)
    output = capsys.readouterr().out
    assert "\x1b" not in output and "ValueError: no" in output and "| f.py" in output
