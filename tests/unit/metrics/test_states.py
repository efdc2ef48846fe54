"""The state of a task, by its reports, its heartbeats and the engine."""

from __future__ import annotations

from cluster_kit.observe.task_view import State
from cluster_kit.workspace import RunDirectory
from tests.unit.metrics.runs import (
    happens,
    read,
    says,
    trains,
    uses,
)


def test_the_engine_takes_precedence_over_reports(run: RunDirectory) -> None:
    trains(run)
    engine = {"chief-0": State.RUNNING, "ps-0": State.PAUSED, "worker-0": State.ENDED}
    told = read(run, 60, engine)
    assert told.states("chief-0") == ["training"] and told.states("ps-0") == ["paused"]
    assert told.states("worker-0") == ["ended"] and told("task_up", task="worker-0") == 0
    assert told.states("worker-1") == ["silent"]
    happens(run, 61, "chief-0", "die", 1)
    assert read(run, 62, engine).states("chief-0") == ["running"]


def test_a_task_without_reports_for_long_is_silent(run: RunDirectory) -> None:
    trains(run)
    assert read(run, 24).states("ps-0") == ["ready"]
    late = read(run, 26)
    assert late.states("ps-0") == ["silent"] and late("task_up", task="ps-0") == 0
    assert late("run_up") == 0


def test_a_frozen_task_is_paused(run: RunDirectory) -> None:
    trains(run)
    happens(run, 10, "ps-0", "pause")
    assert read(run, 60).states("ps-0") == ["paused"]
    happens(run, 61, "ps-0", "unpause")
    uses(run, 61, "ps-0", 4.6, rx=901)
    assert read(run, 62).states("ps-0") == ["ready"]


def test_without_events_the_tasks_reports_are_used(run: RunDirectory) -> None:
    assert read(run).states("chief-0") == ["created"]
    says(run, 0, "chief-0", "start", attempt=1)
    assert read(run).states("chief-0") == ["running"]
    says(run, 1, "chief-0", "end", exit_code=1, reason="failed")
    assert read(run).states("chief-0") == ["ended"]
    says(run, 2, "chief-0", "start", attempt=1)
    says(run, 3, "chief-0", "step", step=1)
    assert read(run).states("chief-0") == ["training"]
    assert read(run)("task_restarts_total", task="chief-0") == 1
