"""A node that goes down with tasks: the messages about it."""

from __future__ import annotations

from dataclasses import replace

from cluster_kit.observe import absences
from cluster_kit.observe.state import RunState
from cluster_kit.platforms.engine import Event
from cluster_kit.run.verdict import judge, notes_of
from tests.unit.stories import CLUSTER, Story

NO_NODE = "no suitable node (scheduling constraints not satisfied on 2 nodes)"


def told(story: Story, *events: tuple[float, str, str, str]) -> RunState:
    seen = story.seen
    for time, action, task, output in events:
        seen = seen.with_event(Event(time, action, task, 137 if action == "die" else None, output))
    return seen


def test_tasks_that_restarted_elsewhere_are_a_note() -> None:
    seen = told(
        Story.of(),
        (5.0, "lost", "worker-0", "big"), (5.0, "die", "worker-0", ""),
        (5.0, "lost", "ps-0", "big"), (5.0, "die", "ps-0", ""),
        (9.0, "start", "worker-0", ""),
    )  # fmt: skip
    (note,) = absences.node_notes(seen)
    assert note == (
        "the node big went down, with worker-0, ps-0 on it; started again on other nodes: worker-0"
    )
    assert note in notes_of(CLUSTER, seen)
    assert absences.node_text(seen, "worker-0") == ""
    assert absences.node_text(seen, "ps-0") == "its node big is down"


def test_a_task_on_a_node_with_a_slow_clock_counts_as_restarted() -> None:
    seen = told(Story.of(), (5.0, "lost", "ps-0", "big"), (4.0, "start", "ps-0", ""))
    assert list(absences.node_notes(seen)) == [
        "the node big went down, with ps-0 on it; started again on other nodes: ps-0"
    ]


def test_a_leader_that_no_other_node_accepts_ends_the_run_and_the_node_is_named() -> None:
    seen = told(
        Story.of(),
        (5.0, "lost", "chief-0", "big"), (5.0, "die", "chief-0", ""),
        (25.0, "homeless", "chief-0", NO_NODE),
    )  # fmt: skip
    assert absences.has_no_place(seen, "chief-0")
    verdict = judge(CLUSTER, seen, "ended")
    assert (verdict.exit_code, verdict.reason, verdict.blame) == (6, "silent", "chief-0")
    assert f"its node big is down, and no other takes it: {NO_NODE}" in verdict.message
    again = told(Story(seen), (30.0, "start", "chief-0", ""))
    assert not absences.has_no_place(again, "chief-0")


def test_a_leader_on_a_drained_node_was_stopped_by_that() -> None:
    seen = told(Story.of(), (5.0, "kill", "chief-0", "big")).with_event(
        Event(5.0, "die", "chief-0", 143)
    )
    verdict = judge(CLUSTER, seen, "ended")
    assert (verdict.exit_code, verdict.reason) == (7, "stopped")
    assert verdict.message == "chief-0 was stopped from outside: its node big is drained"
    by_hand = told(Story.of(), (5.0, "kill", "chief-0", ""))
    assert absences.stopped_by(by_hand, "chief-0") == "by `docker stop`, say"


NO_IMAGE = "No such image: demo:1"


def test_a_leader_that_its_new_node_cannot_start_ends_the_run_with_the_reason() -> None:
    lost = told(
        Story.of(), (5.0, "lost", "chief-0", "big"), (5.0, "die", "chief-0", ""),
        (9.0, "die", "chief-0", NO_IMAGE),
    )  # fmt: skip
    assert absences.has_no_place(lost, "chief-0")
    verdict = judge(CLUSTER, lost, "ended")
    assert (verdict.exit_code, verdict.blame) == (6, "chief-0")
    assert f"its node big is down, and no other takes it: {NO_IMAGE}" in verdict.message
    again = told(Story(lost), (30.0, "start", "chief-0", ""))
    assert not absences.has_no_place(again, "chief-0")


def test_a_crashed_task_that_could_not_be_restarted_has_a_reason() -> None:
    story = Story.of().dies(5, "worker-1", 137)
    seen = told(story, (9.0, "die", "worker-1", NO_IMAGE))
    assert absences.refusal(seen, "worker-1") == f"a node could not start it again: {NO_IMAGE}"
    verdict = judge(CLUSTER, Story(seen).ends(60, "chief-0", 1, "failed", "gone").seen, "ended")
    assert verdict.blame == "worker-1" and NO_IMAGE in verdict.message


def test_the_verdict_of_a_leader_on_a_disconnected_node_is_ignored() -> None:
    seen = told(Story.of(), (15.0, "lost", "chief-0", "big"), (15.0, "die", "chief-0", ""))
    cut_off = Story(seen).ends(20.0, "chief-0", 6, "silent", "worker-0 was silent", "worker-0").seen
    assert cut_off.end_of("chief-0") is None
    verdict = judge(CLUSTER, cut_off, "ended")
    assert (verdict.exit_code, verdict.blame) == (6, "chief-0")
    assert "its node big is down" in verdict.message
    ended = Story.of().ends(10.0, "chief-0", 1, "failed", "no data").seen
    assert told(Story(ended), (15.0, "lost", "chief-0", "big")).end_of("chief-0") is not None
    again = told(Story(cut_off), (30.0, "start", "chief-0", ""))
    assert Story(again).ends(60.0, "chief-0", 0, "finished").seen.end_of("chief-0") is not None


def test_a_silent_task_on_a_lost_node_is_reported_as_such() -> None:
    seen = told(Story.of(), (5.0, "lost", "ps-0", "big"), (5.0, "die", "ps-0", ""))
    story = Story(seen).ends(25.0, "chief-0", 6, "silent", "ps-0 was silent", "ps-0")
    verdict = judge(CLUSTER, story.dies(25.1, "chief-0", 6).seen, "ended")
    assert (verdict.exit_code, verdict.blame) == (6, "ps-0")
    assert verdict.message == "ps-0 was silent (its node big is down)"
    assert replace(verdict, message="").reason == "silent"
