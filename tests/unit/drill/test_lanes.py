"""The contents of a drill's picture."""

from __future__ import annotations

from cluster_kit.drill.fault_plan import Planned
from cluster_kit.drill.measure import Result
from cluster_kit.drill.result import lanes_of
from cluster_kit.drill.scenario_file import At
from cluster_kit.observe.lives import lives_of
from cluster_kit.observe.progress import Entry
from cluster_kit.observe.state import RunState
from cluster_kit.observe.task_view import TaskView
from cluster_kit.platforms.engine import Event
from tests.entries import as_entry

TASKS = {name: TaskView(name, name[:-2], "10.0.0.1", ()) for name in ("chief-0", "worker-0")}


def entry(time: float, event: str, **fields: object) -> Entry:
    return as_entry("chief-0", time, event, dict(fields))


def event(time: float, action: str, task: str = "worker-0") -> Event:
    return Event(time, action, task, None)


def test_spans_steps_and_faults_count_from_when_all_tasks_answered() -> None:
    entries = (
        entry(99, "start"), entry(100, "ready"), entry(101, "step", step=1),
        entry(102, "step", step=5), entry(103, "silent", of="worker-0"),
        entry(106, "start"), entry(107, "step", step=3), entry(107.5, "step", step=2),
        entry(108, "end", exit_code=0),
    )  # fmt: skip
    events = (
        event(98, "start"), event(98, "start", "chief-0"), event(103.5, "kill"),
        event(104, "die"), event(105, "start"), event(110, "die"),
    )  # fmt: skip
    came = Result(Planned(1, "freeze", "worker-0", At(step=1)), 2.0)
    never = Result(Planned(2, "crash", "worker-0", At(step=9)), why_not="the job ended before")
    made = lanes_of(
        RunState(TASKS, "chief-0", events=events, lives=lives_of(events), entries=entries),
        [came, never],
    )
    assert made is not None
    chief, worker = made.lanes
    assert (chief.ran, chief.silent) == (((-2, 10),), ())
    assert worker.ran == ((-2, 4), (5, 10))
    assert worker.silent == ((3, 5),)
    assert made.trained == (((1, 1), (2, 5)), ((7, 3),), ((7.5, 2),))
    assert (made.faults, made.end) == ((came,), 10)


def test_a_task_that_stays_silent_is_shown_as_silent_to_the_end() -> None:
    entries = (entry(100, "ready"), entry(103, "silent", of="worker-0"), entry(109, "end"))
    made = lanes_of(RunState(TASKS, "chief-0", entries=entries), [])
    assert made is not None
    assert made.lanes[1].silent == ((3, 9),)


def test_a_job_that_was_never_ready_has_no_picture() -> None:
    assert lanes_of(RunState(TASKS, "chief-0", entries=(entry(99, "start"),)), []) is None
