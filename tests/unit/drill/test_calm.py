"""When a cluster has recovered from its faults: the moment `calm`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cluster_kit.drill.fault_plan import Injected, Planned, calm_since, over_at
from cluster_kit.drill.scenario_file import At
from cluster_kit.observe.lives import lives_of
from cluster_kit.observe.progress import Entry
from cluster_kit.observe.state import RunState
from cluster_kit.observe.task_view import State, TaskView
from cluster_kit.platforms.engine import Event
from tests.entries import as_entry

TASKS = {name: TaskView(name, name[:-2], "10.0.0.1", ()) for name in ("chief-0", "worker-0")}
TASKS = {name: replace(task, state=State.TRAINING) for name, task in TASKS.items()}


def entry(time: float, event: str, **fields: Any) -> Entry:
    return as_entry("chief-0", time, event, fields)


def event(time: float, action: str, task: str = "worker-0") -> Event:
    return Event(time, action, task, None)


def seen(*observed: Entry | Event, state: State = State.TRAINING) -> RunState:
    tasks = {**TASKS, "worker-0": replace(TASKS["worker-0"], state=state)}
    events = tuple(one for one in observed if isinstance(one, Event))
    return RunState(
        tasks, "chief-0", events=events, lives=lives_of(events),
        entries=tuple(one for one in observed if isinstance(one, Entry)),
    )  # fmt: skip


def injected(kind: str, lasts: float | None = None, time: float = 110.0) -> Injected:
    return Injected(Planned(1, kind, "worker-0", At(calm=3.0), lasts), time)


READY = entry(100, "ready")


@pytest.mark.parametrize(
    ("state", "since"),
    [
        (seen(), None),
        (seen(READY), None),
        (seen(READY, entry(101, "step", step=1), entry(102, "step", step=2)), 101),
        (seen(READY, entry(101, "step", step=1), state=State.RESTARTING), None),
        (seen(READY, entry(101, "step", step=1), entry(103, "silent", of="worker-0")), None),
        (seen(READY, entry(103, "silent", of="worker-0"), entry(104, "heard", of="worker-0"),
              entry(105, "step", step=3)), 105),
        (seen(READY, entry(101, "step", step=1), event(103, "die"), event(104, "start")), None),
        (seen(READY, event(103, "die"), event(104, "start"), entry(105, "step", step=2)), 105),
        (seen(READY, entry(103, "retry"), entry(103.1, "start"), entry(105, "step", step=2)), 105),
        (seen(READY, entry(101, "step", step=7), event(103, "die"), event(104, "start"),
              entry(105, "step", step=7), entry(106, "step", step=8)), 106),
    ],
)  # fmt: skip
def test_a_cluster_is_calm_from_the_first_step_after_its_last_trouble(
    state: RunState, since: float | None
) -> None:
    assert calm_since(state, []) == since


def test_a_restarted_server_has_to_be_ready_again() -> None:
    told = [READY, as_entry("worker-0", 99, "ready", {}), event(103, "die"), event(104, "start"),
            entry(105, "step", step=2)]  # fmt: skip
    assert calm_since(seen(*told, state=State.RUNNING), []) is None
    told.append(as_entry("worker-0", 106, "ready", {}))
    assert calm_since(seen(*told, state=State.READY), []) is None
    assert calm_since(seen(*told, entry(107, "step", step=3), state=State.READY), []) == 107


def test_a_leader_that_reports_steps_need_not_be_ready_again() -> None:
    state = seen(READY, entry(103, "retry"), entry(103.1, "start"), entry(105, "step", step=2))
    running = replace(state.tasks["chief-0"], state=State.RUNNING)
    assert calm_since(replace(state, tasks={**state.tasks, "chief-0": running}), []) == 105


def test_a_fault_has_to_be_over() -> None:
    state = seen(READY, entry(115, "step", step=9), entry(121, "step", step=20))
    assert calm_since(state, [injected("freeze")]) is None
    assert calm_since(state, [injected("freeze", 10)]) == 121


@pytest.mark.parametrize(
    ("fault", "events", "over"),
    [
        (injected("crash"), [], float("inf")),
        (injected("crash"), [event(109, "start"), event(112, "start")], 112),
        (injected("freeze", 60), [], 170),
        (injected("freeze", 60), [event(120, "kill"), event(121, "start")], 121),
        (injected("freeze", 5), [event(120, "start")], 115),
        (injected("slow"), [], 110),
        (injected("memory"), [event(110.5, "oom")], 110),
        (injected("slow", 10), [event(112, "start")], 120),
        (injected("cut", 60), [event(112, "start")], 170),
        (injected("cut", 60), [event(112, "start"), event(121, "kill"), event(122, "start")], 122),
    ],
)
def test_a_fault_ends_by_itself_or_when_its_task_has_recovered(
    fault: Injected, events: list[Event], over: float
) -> None:
    assert over_at(fault, seen(*events)) == over
