"""Stragglers as leaders report them: the present ones, and the times for the notes."""

from __future__ import annotations

import time
from typing import Any

import pytest

from cluster_kit.observe import task_view
from cluster_kit.observe.progress import Entry
from cluster_kit.observe.reconcile import from_containers
from cluster_kit.observe.state import RunState
from tests.entries import as_entry
from tests.make import cluster
from tests.unit.stories import container

FOUND = {
    "of": "worker-1", "seconds": 20.0, "steps_per_s": 3.1, "others_steps_per_s": 12.4,
    "share": 0.2, "slowed": None, "cause": "cpu-limit", "limit": 0.2, "message": "it is slow",
}  # fmt: skip


def begins(time: float = 100.0, **different: Any) -> Entry:
    return as_entry("chief-0", time, "straggling", FOUND | different)


def over(time: float = 140.0, **different: Any) -> Entry:
    fields = {"of": "worker-1", "seconds": 60.0, "share": 0.25, "message": "it was slow"}
    return as_entry("chief-0", time, "straggled", fields | different)


def test_a_straggler_has_the_values_of_its_leaders_report() -> None:
    found = task_view.current([begins()])["worker-1"]
    assert (found.since, found.by, found.steps_per_s) == (80.0, "chief-0", 3.1)
    assert (found.others_steps_per_s, found.share, found.cause, found.limit) == (
        12.4, 0.2, "cpu-limit", 0.2,
    )  # fmt: skip


@pytest.mark.parametrize(
    "odd",
    [
        {"seconds": "x"},
        {"share": True},
        {"limit": [1]},
        {"steps_per_s": 10**400},
        {"share": float("nan")},
    ],
)
def test_invalid_values_are_unknown(odd: dict[str, Any]) -> None:
    assert len(task_view.current([begins(**odd)])) == 1
    assert task_view.note(task_view.periods([begins(**odd)])[0])


@pytest.mark.parametrize(
    ("entry", "is_over"),
    [
        (over(), True),
        (over(of="worker-0"), False),
        (as_entry("worker-1", 140.0, "ready", {}), True),
        (as_entry("worker-1", 140.0, "end", {}), True),
        (as_entry("worker-0", 140.0, "start", {"attempt": 1}), False),
        (as_entry("chief-0", 140.0, "start", {"attempt": 1}), True),
        (as_entry("chief-0", 140.0, "step", {"step": 9}), False),
    ],
    ids=["said", "of another", "ready again", "ended", "another starts", "leader starts", "step"],
)
def test_the_end_of_a_straggler(entry: Entry, is_over: bool) -> None:
    before = task_view.current([begins()])
    assert (task_view.after(before, entry) == {}) is is_over
    assert (task_view.after(before, entry) is before) is not is_over
    [period] = task_view.periods([begins(), entry])
    assert period.until == (140.0 if is_over else None)
    assert period.share == (0.25 if entry == over() else 0.2)


def test_the_notes_have_each_time_with_its_share() -> None:
    entries = [begins(), over(), begins(200.0, of="worker-0", seconds=40.0)]
    first, second = map(task_view.note, task_view.periods(entries))
    assert first.startswith("it is slow (from ") and first.endswith(
        ", 60 s, with 25% of the steps)"
    )
    assert second.startswith("it is slow (from ") and second.endswith(" on)")


def test_a_watched_run_and_status_show_the_same_task() -> None:
    seen = RunState.of(cluster(worker=2))
    for entry in (as_entry("worker-1", 90.0, "ready", {}), begins()):
        seen = seen.with_entry(entry)
    watched = seen.tasks["worker-1"].straggler
    assert watched is not None and seen.tasks["worker-0"].straggler is None
    views = from_containers([container("worker-0"), container("worker-1")], seen.entries)
    assert [view.straggler for view in views] == [None, watched]
    assert seen.with_entry(over()).tasks["worker-1"].straggler is None


def test_a_leader_that_reports_a_straggler_keeps_its_own_speed() -> None:
    seen = RunState.of(cluster(worker=2))
    for entry in (as_entry("chief-0", 90.0, "step", {"step": 5, "steps_per_s": 12.0}), begins()):
        seen = seen.with_entry(entry)
    assert seen.tasks["chief-0"].steps_per_s == 12.0


@pytest.mark.parametrize(
    ("state", "lags"), [("running", True), ("paused", False), ("restarting", False)]
)
def test_a_task_that_does_not_train_is_no_straggler(state: str, lags: bool) -> None:
    now = container("worker-1", state=state, exit_code=None)
    [view] = from_containers([now], [begins()])
    assert view.straggler is not None
    assert view.lags is lags


@pytest.mark.parametrize("seconds", [1e29, 2**63, -1e29, 1e300])
def test_an_invalid_time_is_ignored(seconds: float) -> None:
    (period,) = task_view.periods([begins(seconds=seconds)])
    assert period.begin.since == 100.0
    assert task_view.note(period)


def test_thousands_of_times_take_one_pass() -> None:
    many = [begins(100.0 + at) for at in range(20_000)]
    began = time.process_time()
    assert len(task_view.periods([*many, over(90_000.0)])) == task_view.MOST_LASTING
    assert time.process_time() - began < 2.0
