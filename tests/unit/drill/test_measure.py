"""The effects of faults, computed from simulated observations, and whether they meet the
expectations."""

from __future__ import annotations

from typing import Any

import pytest

from cluster_kit.drill.fault_plan import Injected, Planned
from cluster_kit.drill.measure import Result, results
from cluster_kit.drill.result import misses
from cluster_kit.drill.scenario_file import At, Expect
from cluster_kit.observe.lives import lives_of
from cluster_kit.observe.progress import Entry
from cluster_kit.observe.state import RunState
from cluster_kit.platforms.engine import Event
from cluster_kit.run.outcome import Outcome
from tests.entries import as_entry

FAULT = Planned(1, "crash", "worker-1", At(step=5))
OTHER = Planned(2, "crash", "ps-0", At(step=9))


def entry(time: float, event: str, task: str = "chief-0", **fields: Any) -> Entry:
    return as_entry(task, time, event, fields)


def step(time: float, number: int) -> Entry:
    return entry(time, "step", step=number)


def seen(*observed: Entry | Event) -> RunState:
    entries = tuple(one for one in observed if isinstance(one, Entry))
    events = tuple(one for one in observed if isinstance(one, Event))
    return RunState(
        {},
        "chief-0",
        events=events,
        lives=lives_of(events),
        entries=(entry(100, "ready"), *entries),
    )


def engine(time: float, action: str, task: str = "worker-1") -> Event:
    return Event(time, action, task, None)


def measured(state: RunState, *others: Injected) -> Result:
    return results([FAULT], [Injected(FAULT, 110.0), *others], {}, state)[0]


def test_training_that_continues_without_the_task_loses_nothing() -> None:
    result = measured(
        seen(step(109, 50), engine(110.2, "die"), step(110.1, 55), step(111.5, 60),
             engine(112, "start"))
    )  # fmt: skip
    assert (result.injected_at, result.step) == (10.0, 50)
    assert (result.detected_after, result.detected_by) == (0.2, "die")
    assert (result.going_on_after, result.steps_lost, result.restarts) == (1.5, 0, 1)


def test_a_report_of_the_start_step_is_not_yet_progress() -> None:
    result = measured(
        seen(step(109, 194), engine(110.2, "die"), entry(112, "start", attempt=2), step(115, 180),
             step(116, 180), step(117, 225))
    )  # fmt: skip
    assert (result.going_on_after, result.steps_lost) == (7.0, 14)


def test_the_same_step_again_is_no_progress() -> None:
    stands = [step(111.0 + second, 55) for second in range(9)]
    result = measured(seen(step(109, 50), step(110.4, 55), *stands, step(120.4, 56)))
    assert result.going_on_after == 10.4


def test_a_report_that_was_already_being_sent_is_no_step_after_the_fault() -> None:
    result = measured(seen(step(109, 50), step(110.3, 55), step(120.4, 56), step(121.4, 70)))
    assert (result.detected_after, result.going_on_after, result.steps_lost) == (None, 10.4, 0)
    result = measured(seen(step(109, 50), step(110.9, 55), step(111.9, 60), step(120, 61)))
    assert result.going_on_after == 0.9


def test_steps_that_the_kit_counted_before_the_fault_are_reported_late() -> None:
    def counted(*moments: float) -> list[Entry]:
        return [entry(at, "step", step=int(at * 10), counted=True) for at in moments]

    frozen = measured(seen(*counted(106.8, 108.8, 110.8, 112.8, 119.8, 121.8, 123.8)))
    assert frozen.going_on_after == 9.8
    undisturbed = measured(seen(*counted(106.8, 108.8, 110.8, 112.8, 114.8, 116.8)))
    assert undisturbed.going_on_after == 0.8


def test_after_a_fault_just_before_the_end_there_is_no_step() -> None:
    state = seen(step(109, 50), entry(110.1, "end", exit_code=0))
    assert (measured(state).going_on_after, measured(state).at_end) == (0.1, True)
    assert measured(state).before_end == 0.1
    state = seen(step(109, 50), step(110.5, 55), entry(111, "end", exit_code=0))
    assert not measured(state).at_end


def test_steps_at_risk_are_those_since_the_last_checkpoint() -> None:
    state = seen(step(107, 30), step(109, 50), engine(110.2, "die"), step(110.4, 55),
                 entry(112, "start", attempt=2), step(115, 31))  # fmt: skip
    one = Injected(FAULT, 110.0, saved_at=108.0)
    (result,) = results([FAULT], [one], {}, state)
    assert (result.steps_lost, result.steps_at_risk) == (24, 25)
    (result,) = results([FAULT], [Injected(FAULT, 110.0)], {}, state)
    assert result.steps_at_risk == 55


def test_the_end_of_the_job_counts_as_detection() -> None:
    fault = Planned(1, "stop", "chief-0", At(calm=3))
    state = seen(step(109, 50), entry(110.4, "end", exit_code=143),
                 Event(110.6, "die", "chief-0", 143))  # fmt: skip
    (result,) = results([fault], [Injected(fault, 110.0)], {}, state)
    assert (result.detected_after, result.detected_by) == (0.6, "die")


def test_a_task_that_has_finished_is_no_loss() -> None:
    state = seen(step(109, 50), step(111, 70), step(119, 99), Event(119.5, "die", "worker-1", 0))
    assert (measured(state).detected_after, measured(state).going_on_after) == (None, 1.0)


def test_a_restarted_program_loses_the_steps_that_it_repeats() -> None:
    result = measured(
        seen(step(109, 50), engine(110.2, "die"), step(110.4, 55), entry(112, "start", attempt=2),
             step(115, 21), step(116, 70))
    )  # fmt: skip
    assert (result.going_on_after, result.steps_lost) == (5.0, 34)


def test_a_program_that_goes_back_by_itself_loses_the_steps_that_it_repeats() -> None:
    result = measured(
        seen(step(109, 50), engine(110.2, "die"), step(110.5, 55), step(113, 41), step(114, 80))
    )
    assert (result.going_on_after, result.steps_lost) == (3.0, 14)


def test_a_silent_task_is_detected_when_it_is_reported() -> None:
    silent = entry(121, "silent", of="worker-1")
    about_another = entry(115, "silent", of="ps-0")
    result = measured(seen(step(109, 50), about_another, step(112, 60), silent, step(123, 90)))
    assert (result.detected_after, result.detected_by, result.going_on_after) == (11, "silent", 13)


@pytest.mark.parametrize("pair", [("worker-1", "ps-0"), ("ps-0", "worker-1")])
def test_a_cut_between_two_tasks_is_detected_when_either_gets_no_answer(pair) -> None:
    of, by = pair
    told = entry(120, "unanswered", of=of, by=by, seconds=10.0)
    result = measured(seen(step(109, 50), told, step(121, 60), step(122, 90)))
    assert (result.detected_after, result.detected_by) == (10, "unanswered")


def test_a_silence_that_begins_after_the_fault_has_another_cause() -> None:
    fault = Planned(1, "freeze", "ps-0", At(step=5), lasts=8.0)
    reports = [step(109, 50), step(118.5, 60), step(119.5, 90)]
    no_answer = entry(170, "unanswered", of="worker-1", by="ps-0", seconds=10.0)
    silent = entry(170, "silent", of="ps-0", last_heard=159.0)
    state = seen(*reports, no_answer, silent, step(171, 120))
    (result,) = results([fault], [Injected(fault, 110.0)], {}, state)
    assert (result.detected_after, result.going_on_after) == (None, 8.5)
    during = entry(119, "unanswered", of="worker-1", by="ps-0", seconds=10.0)
    state = seen(*reports, during, step(121, 120))
    (result,) = results([fault], [Injected(fault, 110.0)], {}, state)
    assert (result.detected_after, result.detected_by) == (9, "unanswered")


def test_events_after_the_next_fault_belong_to_that_one() -> None:
    later = Injected(OTHER, 120.0)
    state = seen(step(109, 50), step(111, 60), entry(121, "failure"), entry(122, "start"),
                 step(125, 30))  # fmt: skip
    result = measured(state, later)
    assert (result.detected_after, result.going_on_after, result.steps_lost) == (None, 1.0, 0)
    again = Planned(3, "crash", "worker-1", At(step=9))
    same = measured(seen(engine(121, "die")), Injected(again, 120.0))
    assert same.detected_after is None


def test_a_job_that_succeeds_has_continued() -> None:
    end = entry(115, "end", exit_code=0, reason="finished")
    assert measured(seen(step(109, 50), end)).going_on_after == 5.0
    bad = entry(115, "end", exit_code=6, reason="silent")
    assert measured(seen(step(109, 50), bad)).going_on_after is None


def test_ends_after_the_jobs_end_are_no_effect_of_the_fault() -> None:
    end = entry(115, "end", exit_code=0, reason="finished")
    assert measured(seen(step(109, 50), end, engine(115.5, "die"))).detected_after is None


def test_a_fault_that_was_not_injected_has_a_reason() -> None:
    one, two = results([FAULT, OTHER], [], {OTHER: "ps-0 was exited from its moment on"}, seen())
    assert one.why_not == "the job ended before"
    assert two.why_not == "ps-0 was exited from its moment on"


GOOD = Result(FAULT, 10.0, 50, 0.2, "die", 3.5, 12, 50, 1)


def outcome(**different: Any) -> Outcome:
    usual: dict[str, Any] = {
        "cluster": "demo", "success": True, "exit_code": 0, "reason": "finished", "blame": None,
        "message": "", "last_words": "", "notes": [], "tasks": [], "timings_s": {},
        "metrics": {"test_accuracy": 0.8}, "cure": "", "run": "/r",
    }  # fmt: skip
    return Outcome(**usual | different)


FAILED = {"success": False, "reason": "silent", "blame": "ps-0", "message": "ps-0 is silent\nmore"}


@pytest.mark.parametrize(
    ("expect", "result", "ended", "message"),
    [
        ({}, GOOD, {}, []),
        ({}, GOOD, FAILED,
         ["the run should succeed; it failed (silent, blame ps-0): ps-0 is silent"]),
        ({"success": False}, GOOD, {}, ["the run should fail; it succeeded"]),
        ({"success": False}, GOOD, FAILED, []),
        ({"reason": "silent"}, GOOD, FAILED, []),
        ({"reason": "stall"}, GOOD, FAILED,
         ["the run should end with reason stall; it ended with silent"]),
        ({"recovers_within": 3.5, "loses_at_most": 12}, GOOD, {}, []),
        ({"recovers_within": 3}, GOOD, {},
         [f"{FAULT}: the training should continue within 3 s; it took 3.5 s"]),
        ({"recovers_within": 3}, Result(FAULT), {},
         [f"{FAULT}: the training should continue within 3 s; it never did"]),
        ({"loses_at_most": 11}, GOOD, {}, [f"{FAULT}: at most 11 steps should be lost, not 12"]),
        ({"recovers_within": 3}, Result(FAULT, why_not="the job ended before"), {},
         [f"{FAULT} was not injected: the job ended before"]),
        ({"metrics": {"test_accuracy": {"min": 0.8, "max": 0.8}}}, GOOD, {}, []),
        ({"metrics": {"test_accuracy": {"min": 0.9}}}, GOOD, {},
         ["test_accuracy should be at least 0.9; it is 0.8"]),
        ({"metrics": {"test_accuracy": {"max": 0.5}}}, GOOD, {},
         ["test_accuracy should be at most 0.5; it is 0.8"]),
        ({"metrics": {"speed": {"max": 5}}}, GOOD, {},
         ["speed should be at most 5; it was not reported"]),
    ],
)  # fmt: skip
def test_each_unmet_expectation_is_a_sentence(
    expect: dict[str, Any], result: Result, ended: dict[str, Any], message: list[str]
) -> None:
    assert misses(Expect.model_validate(expect), [result], outcome(**ended)) == message
