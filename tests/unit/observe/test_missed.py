"""Missed events are reconstructed from the state of the containers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cluster_kit.observe.progress import Entry
from cluster_kit.observe.reconcile import is_told, missed
from cluster_kit.observe.state import RunState
from cluster_kit.observe.task_view import State
from cluster_kit.platforms.engine import Container, Event
from tests.entries import as_entry
from tests.unit.stories import CLUSTER, container

ASKED = 100.0


def alive(name: str, **different: Any) -> Container:
    usual = {"state": "running", "exit_code": None, "oom": False, "started": 10.0, "finished": -1.0}
    return container(name, **(usual | different))


def ended(name: str, code: int = 0, **different: Any) -> Container:
    usual = {"state": "exited", "exit_code": code, "oom": False, "started": 10.0, "finished": 50.0}
    return container(name, **(usual | different))


def after(*events: Event) -> RunState:
    seen = RunState.of(CLUSTER)
    for event in events:
        seen = seen.with_event(event)
    return seen


def started(name: str, at: float = 10.1) -> Event:
    return Event(at, "start", name, None)


@pytest.mark.parametrize(
    "now", [alive("ps-0"), ended("ps-0", 3), alive("ps-0", state="paused"),
            ended("ps-0", 137, oom=True), alive("ps-0", restarts=2)],
)  # fmt: skip
def test_nothing_is_missing_after_everything_was_added(now: Container) -> None:
    seen = after()
    events = missed(seen, [now], ASKED)
    assert events
    for event in events:
        seen = seen.with_event(event)
    task = seen.tasks["ps-0"]
    assert (task.state, task.exit_code) == (State.of_engine(now.state), now.exit_code)
    assert task.restarts == now.restarts
    assert missed(seen, [now], ASKED) == []


def test_reported_events_are_not_added_again() -> None:
    seen = after(started("ps-0"), Event(50.1, "die", "ps-0", 0), started("ps-1"))
    assert missed(seen, [ended("ps-0"), alive("ps-1")], ASKED) == []


def test_a_missed_end_and_start_are_reconstructed() -> None:
    """The exit code of the life between them is unknown."""
    seen = after(started("ps-0"))
    now = alive("ps-0", started=60.0, finished=59.0, restarts=1)
    die, start = missed(seen, [now], ASKED)
    assert (die.action, die.exit_code, start) == ("die", None, Event(60.0, "start", "ps-0", None))
    assert 10.1 < die.time < 60.0


def told(*lives: tuple[float, float, int], name: str = "worker-0") -> list[Entry]:
    """Returns a task's reports in these lives: (begin, end, exit code)."""
    entries = []
    for begin, end, code in lives:
        entries.append(as_entry(name, begin + 0.5, "start", {"attempt": 1}))
        if end:
            entries.append(
                as_entry(name, end - 0.2, "end", {"exit_code": code, "reason": "failed"})
            )
    return entries


LIVES = ((10.0, 20.0, 1), (21.0, 40.0, 3), (41.0, 0.0, 0))
NOW = alive("worker-0", started=41.0, finished=40.0, restarts=2)
HEARD = [Event(at, action, "worker-0", code) for at, action, code in (
    (10.0, "start", None), (20.0, "die", 1), (21.0, "start", None), (40.0, "die", 3),
    (41.0, "start", None),
)]  # fmt: skip


@pytest.mark.parametrize("remembered", range(6))
def test_lives_that_the_engine_has_forgotten_are_read_from_the_tasks_reports(
    remembered: int,
) -> None:
    """However much of the end the engine still knows, the result is complete."""
    seen = after(*HEARD[5 - remembered :])
    for entry in told(*LIVES):
        seen = seen.with_entry(entry)
    seen = seen.with_missed(missed(seen, [NOW], ASKED))
    assert [event.action for event in seen.events] == ["start", "die"] * 2 + ["start"]
    assert [event.exit_code for event in seen.events] == [None, 1, None, 3, None]
    assert [abs(e.time - h.time) < 1 for e, h in zip(seen.events, HEARD, strict=True)] == [True] * 5
    task = seen.tasks["worker-0"]
    assert (task.restarts, task.state, task.exit_code) == (2, State.RUNNING, None)
    assert seen.started_at("worker-0") == 41.0
    assert missed(seen, [NOW], ASKED) == []
    assert all(is_told(event, seen.events) for event in HEARD), "told twice, it counts once"
    assert not is_told(Event(50.0, "die", "worker-0", 1), seen.events)


def test_lives_without_a_report_are_counted_by_the_engine() -> None:
    seen = after()
    for entry in told((41.0, 0.0, 0)):
        seen = seen.with_entry(entry)
    seen = seen.with_missed(missed(seen, [NOW], ASKED))
    assert [event.action for event in seen.events] == ["start", "die"] * 2 + ["start"]
    assert seen.tasks["worker-0"].restarts == 2


def test_an_end_has_a_start_before_it() -> None:
    seen = after(*HEARD[3:])
    seen = seen.with_missed(missed(seen, [replace(NOW, restarts=1, created=9.0)], ASKED))
    assert [(e.time, e.action) for e in seen.events][:2] == [(9.0, "start"), (40.0, "die")]
    assert seen.tasks["worker-0"].restarts == 1


def test_restarts_that_only_the_progress_file_shows_are_counted() -> None:
    """`start_again` resets the engine's own count."""
    seen = after(started("chief-0"))
    for at in (10.2, 60.2):
        seen = seen.with_entry(as_entry("chief-0", at, "start", {"attempt": 1}))
    for event in missed(seen, [alive("chief-0", started=60.0)], ASKED):
        seen = seen.with_event(event)
    assert seen.tasks["chief-0"].restarts == 1


@pytest.mark.parametrize("late", [0.055, 1.5])
def test_a_start_that_the_engine_reports_late_is_not_a_second_one(late: float) -> None:
    seen = after(started("chief-0", 10.0 + late))
    seen = seen.with_entry(as_entry("chief-0", 10.0, "start", {"attempt": 1}))
    assert missed(seen, [alive("chief-0", started=10.0 + late)], ASKED) == []


def test_a_container_that_was_removed_has_ended() -> None:
    seen = after(started("ps-0"), started("ps-1"))
    events = missed(seen, [alive("ps-1")], ASKED)
    assert events == [Event(ASKED, "die", "ps-0", None)]
    assert seen.with_event(events[0]).tasks["ps-0"].state is State.ENDED


def test_a_container_that_continues_after_a_pause() -> None:
    seen = after(started("ps-0"), Event(20.0, "pause", "ps-0", None))
    assert [event.action for event in missed(seen, [alive("ps-0")], ASKED)] == ["unpause"]


@pytest.mark.parametrize(
    "now", [alive("ps-0", started=ASKED + 1), ended("ps-0", finished=ASKED + 1),
            alive("ps-0", state="created", started=-6e10)],
)  # fmt: skip
def test_events_after_the_question_are_left_to_the_engine(now: Container) -> None:
    seen = after(started("ps-0")) if now.state == "exited" else after()
    assert missed(seen, [now], ASKED) == []


def test_events_are_in_order() -> None:
    events = missed(after(), [ended("ps-0"), alive("ps-1", started=5.0)], ASKED)
    assert [event.time for event in events] == sorted(event.time for event in events)
