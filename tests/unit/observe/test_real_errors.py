"""The failing line of a program, found in the logs of real TensorFlow and Keras programs."""

from __future__ import annotations

import itertools

import pytest

from cluster_kit.observe.logs import Shown
from cluster_kit.observe.tracebacks import last_words
from cluster_kit.show.view import visible
from cluster_kit.this_host import SystemClock
from tests.make import ROOT

ERRORS = ROOT / "tests" / "trainer" / "errors"
RAISED = sorted({path.stem for path in ERRORS.glob("*.words")} - {"says_and_exits"})
FLOOD = "".join(f"step {step}: loss 0.5\n" for step in range(2000))


def test_the_programs_own_line_is_in_the_last_output(subtests: pytest.Subtests) -> None:
    for name, after in itertools.product(RAISED, ("", FLOOD)):
        with subtests.test(name=name, flood=bool(after)):
            log = (ERRORS / f"{name}.log").read_text() + after
            words = (ERRORS / f"{name}.words").read_text()
            output = last_words(log, error=words)
            assert f'File "/program/{name}.py", line ' in output
            assert "step 1999" not in output
            assert len(output.splitlines()) <= 12


def test_without_the_runners_report_the_error_is_complete(subtests: pytest.Subtests) -> None:
    """As for a program that the kit's runner does not run."""
    for name in RAISED:
        with subtests.test(name=name):
            log = (ERRORS / f"{name}.log").read_text()
            last = (ERRORS / f"{name}.words").read_text().rstrip().splitlines()[-1]
            if "Original stack trace" not in log:
                assert last.strip() in last_words(log)


def test_an_error_in_the_outcome_is_not_also_shown_in_pieces(subtests: pytest.Subtests) -> None:
    for name in RAISED:
        with subtests.test(name=name):
            log = (ERRORS / f"{name}.log").read_text()
            words = (ERRORS / f"{name}.words").read_text()
            lines: list[str] = []
            shown = Shown(SystemClock(), "chief-0", lambda _task, text, to=lines: to.append(text))
            shown.finish(stamped(log, 1).splitlines(), f"{last_words(log, error=words)}\n{words}")
            assert [line for line in lines if visible(line)] == []


def stamped(text: str, second: int) -> str:
    return "".join(f"2026-03-01T10:00:{second:02}.5Z {line}\n" for line in text.splitlines())


def test_the_last_lines_of_stderr_are_not_lost_behind_stdout() -> None:
    early, late = stamped("warning: old", 1), stamped("usage: train\ntrain: error: no --data", 20)
    log = early + late + stamped(FLOOD, 20) + stamped("the program ended", 21)
    output = last_words(log, stderr=early + late).splitlines()
    assert output[:2] == ["usage: train", "train: error: no --data"]
    assert output[2].startswith("step ") and output[-1] == "the program ended"
    assert len(output) == 12
    nothing_new = last_words(late + stamped("bye", 21), stderr=late).splitlines()
    assert nothing_new == ["usage: train", "train: error: no --data", "bye"]
