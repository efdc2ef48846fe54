"""What each task did and when: consecutive states, overlays above them, and marks."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from cluster_kit.observe.progress import Entry
from cluster_kit.observe.user_requests import Asked
from cluster_kit.platforms.engine import Event
from cluster_kit.report.lanes import Lane, Span, lanes_of
from tests.make import cluster
from tests.unit.report.runs import CLUSTER, started, told, trained


def shown(spans: Sequence[Span]) -> list[tuple[str, float, float]]:
    return [(str(span.state), span.begin, span.end) for span in spans]


def lane(task: str, events: Sequence[Event], entries: Sequence[Entry], end: float = 10) -> Lane:
    return lanes_of(CLUSTER, events, entries, end)[task]


def of_run(task: str) -> list[tuple[str, float, float]]:
    run = trained()
    return shown(lanes_of(run.cluster, run.events, run.entries, 10)[task].spans)


def test_a_leader_starts_is_ready_trains_and_finishes() -> None:
    assert of_run("chief-0") == [
        ("starting", 0, 2), ("ready", 2, 3), ("training", 3, 8), ("finishing", 8, 10),
    ]  # fmt: skip


def test_a_server_works_while_the_leader_trains() -> None:
    assert of_run("worker-0") == [
        ("starting", 0, 1), ("ready", 1, 3), ("training", 3, 8), ("ready", 8, 10),
    ]  # fmt: skip
    assert of_run("ps-0") == [("starting", 0, 1), ("ready", 1, 10)]


def test_an_evaluator_scores_a_checkpoint_and_waits_for_the_next_one() -> None:
    told_of = [told(at, "evaluator-0", "scoring", pending=count)
               for at, count in ((2, 0), (3, 2), (5, 0), (6, 1))]  # fmt: skip
    told_of.insert(2, told(4, "evaluator-0", "evaluation", checkpoint="ckpt-1"))
    found = shown(lane("evaluator-0", started(), told_of).spans)
    assert found == [
        ("starting", 0, 2), ("waiting", 2, 3), ("scoring", 3, 5), ("waiting", 5, 6),
        ("scoring", 6, 10),
    ]  # fmt: skip


def test_a_leader_that_reported_no_step_until_its_end_ran() -> None:
    entries = [told(1, "chief-0", "ready")]
    assert shown(lane("chief-0", started(), entries).spans)[1:] == [("ready", 1, 10)]
    found = lane("chief-0", [*started(), Event(4, "die", "chief-0", 1)], entries)
    assert shown(found.spans) == [("starting", 0, 1), ("running", 1, 4)]
    assert [(mark.kind, mark.text) for mark in found.marks] == [("fault", "ended with exit code 1")]


def test_a_coordinator_trains_from_its_workers_first_function() -> None:
    entries = [
        told(1, "chief-0", "ready"),
        *(told(at, "worker-0", "step", own_steps=at - 2) for at in (2, 3, 9)),
        told(5, "chief-0", "step", step=9), told(8, "chief-0", "phase", name="finishing"),
    ]  # fmt: skip
    found = lane("chief-0", started(), entries)
    assert shown(found.spans)[1:] == [
        ("ready", 1, 3), ("training", 3, 8), ("finishing", 8, 10),
    ]  # fmt: skip
    assert found.marks == ()


def test_an_evaluator_that_reports_nothing_runs() -> None:
    again = [*started(), Event(4, "die", "evaluator-0", 1), Event(6, "start", "evaluator-0", None)]
    entries = [told(at, "evaluator-0", "start", attempt=1) for at in (0.5, 6.5)]
    found = lane("evaluator-0", again, entries)
    assert shown(found.spans) == [("running", 0, 4), ("running", 6, 10)]


def test_a_report_that_comes_before_the_engines_start_counts() -> None:
    events = [Event(at, what, "ps-0", 137 if what == "die" else None)
              for at, what in ((0, "create"), (2, "start"), (5, "die"), (7, "start"))]  # fmt: skip
    found = lane("ps-0", events, [told(1.9, "ps-0", "ready"), told(6.9, "ps-0", "ready")])
    assert shown(found.spans) == [("starting", 0, 1.9), ("ready", 1.9, 5), ("ready", 6.9, 10)]


def test_time_between_an_end_and_the_next_start_is_empty() -> None:
    again = [*started(), Event(3, "die", "ps-0", 137), Event(5, "start", "ps-0", None)]
    found = lane("ps-0", again, [told(1, "ps-0", "ready"), told(6, "ps-0", "ready")])
    assert shown(found.spans) == [
        ("starting", 0, 1), ("ready", 1, 3), ("starting", 5, 6), ("ready", 6, 10),
    ]  # fmt: skip
    assert [mark.kind for mark in found.marks] == ["fault", "restart"]


@pytest.mark.parametrize("what", ["restart", "stop", "kill"])
def test_requested_actions_are_no_faults_and_later_ones_are(what: str) -> None:
    again = [
        *started(), Event(3, "die", "ps-0", 137), Event(5, "start", "ps-0", None),
        Event(8, "die", "ps-0", 1), Event(9, "start", "ps-0", None),
    ]  # fmt: skip
    requests = [Asked(2.5, what, ("ps-0",)), Asked(0.1, what, ("worker-0",))]
    marks = lanes_of(CLUSTER, again, [], 10, requests)["ps-0"].marks
    assert [mark.kind for mark in marks] == ["asked", "asked", "fault", "restart"]
    assert marks[0].text == f"ended with exit code 137: a user requested it ({what})"


def test_a_task_that_a_user_froze_continues_as_before() -> None:
    frozen = [*started(), Event(3, "pause", "ps-0", None), Event(5, "unpause", "ps-0", None)]
    found = lane("ps-0", frozen, [told(1, "ps-0", "ready")])
    assert shown(found.spans)[1:] == [("ready", 1, 3), ("paused", 3, 5), ("ready", 5, 10)]
    assert [(mark.at, mark.text) for mark in found.marks] == [(3, "frozen")]


def test_steps_that_the_leader_reports_later_do_not_end_a_freeze() -> None:
    frozen = [*started(), Event(4, "pause", "worker-0", None)]
    steps = [told(at, "chief-0", "step", step=at) for at in (2, 6)]
    counted = [told(at, "worker-0", "step", own_steps=at) for at in (3, 5)]
    found = lane("worker-0", frozen, [told(1, "worker-0", "ready"), *steps, *counted])
    assert shown(found.spans)[-1] == ("paused", 4, 10)


def test_a_worker_is_ready_while_its_coordinator_begins_again() -> None:
    entries = [
        told(1, "worker-0", "ready"), told(1, "chief-0", "ready"),
        told(2, "worker-0", "step", own_steps=1), told(2, "chief-0", "step", step=1),
        told(4, "chief-0", "retry", attempt=2), told(4, "chief-0", "start", attempt=2),
        told(6, "chief-0", "ready"), told(7, "chief-0", "step", step=1),
        told(7, "worker-0", "step", own_steps=1),
    ]  # fmt: skip
    found = shown(lane("worker-0", started(), entries).spans)
    assert [span for span in found if span[0] == "ready"] == [("ready", 1, 2), ("ready", 4, 7)]


def test_a_silence_lasts_from_the_last_report_to_the_next() -> None:
    entries = [
        told(4, "chief-0", "silent", of="ps-0", last_heard=2),
        told(6, "chief-0", "heard", of="ps-0"),
        told(9, "chief-0", "silent", of="ps-0", last_heard="then"),
    ]
    assert shown(lane("ps-0", started(), entries).over) == [("silent", 2, 6), ("silent", 9, 10)]
    again = [*started(), Event(5, "start", "ps-0", None)]
    assert shown(lane("ps-0", again, entries[:1]).over) == [("silent", 2, 5)]


def test_waiting_training_is_on_the_leaders_lane() -> None:
    entries = [
        told(4, "chief-0", "waiting", of="ps-0", seconds=1),
        told(6, "chief-0", "waited", of="ps-0"),
        told(8, "chief-0", "waiting", of="worker-0"),
    ]  # fmt: skip
    found = lane("chief-0", started(), entries).over
    assert shown(found) == [("waiting", 3, 6), ("waiting", 8, 10)]
    assert found[0].text == "waits for ps-0"
    begun_again = [*entries, told(9, "chief-0", "start", attempt=2)]
    found = lane("chief-0", started(), begun_again).over
    assert shown(found) == [("waiting", 3, 6), ("waiting", 8, 9)]


def test_retries_epochs_scores_and_stragglers_are_marked() -> None:
    entries = [
        told(1, "chief-0", "retry", attempt=2, reason="ps-0 was lost"),
        told(2, "chief-0", "epoch", epoch=1),
        told(3, "chief-0", "straggling", of="worker-1"),
    ]
    found = lane("chief-0", started(), entries).marks
    assert [(mark.kind, mark.text) for mark in found] == [
        ("retry", "attempt 2: ps-0 was lost"), ("epoch", "epoch 1"),
        ("straggler", "worker-1 is a straggler"),
    ]  # fmt: skip
    score = told(4, "evaluator-0", "evaluation", checkpoint="c", map_50=0.51239, loss="none")
    assert lane("evaluator-0", started(), [score]).marks[0].text == "c, map 50 0.5124"


def test_workers_that_train_themselves_have_their_own_states() -> None:
    peers = cluster(chief=0, ps=0, worker=2)
    entries = [told(1, "worker-1", "start"), told(4, "worker-1", "step", step=1)]
    found = lanes_of(peers, started(peers), entries, 10)["worker-1"]
    assert shown(found.spans) == [("starting", 0, 4), ("training", 4, 10)]


def test_a_task_that_never_ran_has_an_empty_lane() -> None:
    assert lane("ps-0", [], [told(1, "ps-0", "ready")]) == Lane((), (), ())
