"""The page of a run is correct for each way to end, and no text of a run can break its layout."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_kit.run.outcome import without_run
from cluster_kit.summary.markdown import (
    MOST_ROWS,
    MOST_WORDS,
    Evidence,
    block,
    leader_of,
    losses,
    markdown,
    text,
)
from tests.unit.summary.runs import ENTRIES, EVENTS, NEVER_STARTED, failed, outcome, task

EVIL = "<img src=x onerror=1> | **no** [l](http://x) `code` # h\n## not a heading\n```\n~~~"


def test_a_successful_run() -> None:
    page = markdown(
        Evidence(outcome(notes=["ps-0 came back"]), EVENTS, tuple(losses(ENTRIES, "chief-0")))
    )
    lines = page.splitlines()
    assert lines[0] == "## ✅ demo succeeded after 8.0 s"
    assert "| chief-0 | 10.0.0.2 | - | 0 | 0 | 3.6 MB | 0.9 kB |  |" in lines
    assert "| ps-0 | 10.0.0.2 | 0, 1 | 0 | 0 | - | - |  |" in lines
    assert "| test accuracy | 0.9368 |" in lines and "| updates | 80 |" in lines
    assert "- ps-0 came back" in lines and "| exit code | 0 |" in lines
    assert "Blame" not in page and page.count("```mermaid") == 2


def test_a_failed_run() -> None:
    page = markdown(Evidence(failed(), EVENTS))
    lines = page.splitlines()
    assert lines[0] == "## ❌ demo failed after 8.0 s"
    assert "Blame: **chief-0**" in lines and "→ fix it" in lines
    assert "```text\nValueError: no\n```" in page and "File train.py, line 7" in page
    assert "| **chief-0** | 10.0.0.2 | - | 1 | 0 | - | - | blame |" in lines
    assert "| ps-0 | 10.0.0.2 | - | 137 | 2 | - | - | out of memory |" in lines
    assert "| reason | failed |" in lines and "| exit code | 5 |" in lines
    assert "### Metrics" not in page and page.count("```mermaid") == 1


def test_a_run_that_never_started() -> None:
    page = markdown(Evidence(without_run(NEVER_STARTED)))
    assert page.startswith("## ❌ The cluster did not start\n\n```text\nworker = 0: a job\n```\n")
    assert "→ set \\`worker = 1\\`" in page
    assert "| reason | manifest |" in page and "| exit code | 2 |" in page
    assert "### " not in page and "| run |" not in page


@pytest.mark.parametrize(
    ("reason", "words"), [("stopped", "was stopped"), ("interrupted", "was interrupted")]
)
def test_a_stopped_run_is_not_called_failed(reason: str, words: str) -> None:
    page = markdown(Evidence(failed(reason=reason)))
    assert page.startswith(f"## ❌ demo {words} after")


@pytest.mark.parametrize("key", ["message", "last_words"])
def test_an_error_stays_inside_its_code_block(key: str) -> None:
    page = markdown(Evidence(failed(**{key: EVIL})))
    assert f"````text\n{EVIL}\n````" in page


@pytest.mark.parametrize(
    "other", [{"cure": EVIL}, {"notes": [EVIL]}, {"metrics": {EVIL: EVIL}}, {"run": EVIL}]
)
def test_texts_stay_on_their_line_and_are_not_markup(other: dict[str, Any]) -> None:
    page = markdown(Evidence(failed(**other)))
    assert "<img" not in page and "&lt;img" in page
    assert "\n## not" not in page and "**no**" not in page and "\n~~~" not in page
    for line in page.splitlines():
        if line.startswith("| ") and "img" in line:
            assert len(re.findall(r"(?<!\\)\|", line)) == 3


def test_the_page_is_bounded_for_a_thousand_tasks_and_a_long_error() -> None:
    tasks = [task(f"worker-{index}") for index in range(1000)]
    page = markdown(Evidence(failed(tasks=tasks, message="x" * 10**6 + "END")))
    assert page.count("| worker-") == MOST_ROWS and "… and 800 more" in page
    assert "xEND\n" in page and len(page) < MOST_WORDS + 100 * MOST_ROWS


def test_long_notes_and_metrics_fit_into_a_summary() -> None:
    notes = ["<" * 20_000] * 200
    metrics = {f"{number}{'<' * 20_000}": "<" * 20_000 for number in range(1_000)}
    page = markdown(Evidence(failed(notes=notes, metrics=metrics)))
    assert len(page.encode()) < 1 << 20


def test_the_leader_is_the_chief_or_the_first_worker() -> None:
    tasks = [task(name) for name in ("chief-0", "worker-0", "worker-1", "ps-0", "other-0")]
    assert leader_of(outcome(tasks=tasks)) == "chief-0"
    assert leader_of(outcome(tasks=tasks[1:])) == "worker-0"
    assert leader_of(outcome(tasks=tasks[3:])) == ""
    assert leader_of(outcome(tasks=[])) == ""


@given(st.text())
def test_any_text_becomes_one_line(words: str) -> None:
    assert len(text(words).splitlines()) <= 1
    assert not re.search(r"(?<!\\)[`*_\[\]|~<]", text(words).replace("\\\\", ""))


@given(st.text(alphabet="`a\n"))
def test_no_text_can_close_a_code_block(words: str) -> None:
    fence, *inner, last = block(words).split("\n")
    assert last == fence.removesuffix("text")
    assert not any(line.startswith(last) for line in inner)
