"""The clock is set by an hour during a run: nothing that depends on time is misjudged."""

from __future__ import annotations

import pytest

from cluster_kit.host import moment
from cluster_kit.observe.listener import Timeline
from tests.fakes.acting import LEADS, Life, dies, ends, says
from tests.fakes.clock import BEGAN, Clock
from tests.fakes.stage import Stage

HOUR = 3600.0
SETS = pytest.mark.parametrize("by", [-HOUR, HOUR], ids=["back", "forward"])


def set_clock(stage: Stage, at: float, by: float) -> None:
    stage.clock.at(at, lambda: setattr(stage.clock, "ahead", by))


@SETS
@pytest.mark.parametrize("at", [0.7, 1.5, 2.8, 3.4])
def test_a_successful_run_ends_normally_with_its_own_times(
    stage: Stage, by: float, at: float
) -> None:
    set_clock(stage, at, by)
    outcome = stage.up()
    assert (outcome.success, outcome.reason, outcome.notes) == (True, "finished", [])
    assert [task.restarts for task in outcome.tasks] == [0] * 5
    assert outcome.timings_s["first_step"] == pytest.approx(1.0, abs=0.3)
    assert outcome.timings_s["train"] == pytest.approx(2.0, abs=0.3)
    assert outcome.timings_s["total"] < 10
    assert outcome.metrics["test_accuracy"] == 0.9
    assert stage.view.states["chief-0"][-2:] == ["training", "ended"]
    assert stage.is_clean()


@SETS
def test_a_failed_leader_is_not_restarted(stage: Stage, by: float) -> None:
    set_clock(stage, 1.5, by)
    outcome = stage.up({"chief-0": [Life((*LEADS.steps[:4], ends(2.0, 1, "failed", "E: no")))]})
    assert (outcome.reason, outcome.blame, outcome.message) == ("failed", "chief-0", "E: no")
    assert {task.name: task.restarts for task in outcome.tasks}["chief-0"] == 0


@SETS
def test_a_worker_that_crashes_afterwards_is_restarted(stage: Stage, by: float) -> None:
    set_clock(stage, 1.0, by)
    crash = Life((says(0.2, "ready"), dies(1.5)))
    outcome = stage.up({"worker-1": [crash, Life((says(0.1, "ready"),))]})
    assert outcome.success
    assert {task.name: task.restarts for task in outcome.tasks}["worker-1"] == 1


@SETS
def test_a_resumed_run_reports_nothing_of_the_earlier_run(stage: Stage, by: float) -> None:
    assert stage.up().success
    stage.clock.ahead = by
    outcome = stage.up(
        {"chief-0": [Life((says(0.1, "start", attempt=1), dies(0.5)))]}, resume=True, evaluator=0
    )
    assert (outcome.success, outcome.metrics) == (False, {})


@SETS
def test_attach_works_after_the_clock_was_set(stage: Stage, by: float) -> None:
    """Its job deadline is an hour: by the time of day it would have passed."""
    late = Life((*LEADS.steps[:4], ends(30.0, 0, "finished")))
    stage.detach({"chief-0": [late]}, deadline={"job": 100.0, "start": 20.0})
    stage.clock.pass_by(5)
    stage.clock.ahead = by
    outcome = stage.attach()
    assert (outcome.success, outcome.reason) == (True, "finished")
    assert 30 < outcome.timings_s["total"] < 60


def test_a_timeline_never_goes_back() -> None:
    clock = Clock()
    made = Timeline(clock)
    assert made.of(BEGAN + 5) == BEGAN + 5
    clock.pass_by(10)
    for by in (-HOUR, HOUR, 0.0):
        clock.ahead = by
        assert made.now() == pytest.approx(BEGAN + 10)
        assert made.of(BEGAN + 10 + by) == pytest.approx(BEGAN + 10)
    assert made.of(BEGAN + 9) == BEGAN + 9, "written before the clock was set, read after"


def test_seconds_between_two_processes_do_not_use_the_time_of_day() -> None:
    clock = Clock()
    then = moment(clock, 2.0)
    clock.pass_by(10)
    clock.ahead = -HOUR
    assert then.seconds(clock) == 12.0
    clock.booted = "the next start"
    assert then.seconds(clock) == 0.0, "started again: only the time of day is left"
    clock.ahead = 0.0
    assert then.seconds(clock) == 12.0
