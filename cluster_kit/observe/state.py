"""What a run showed: a value that the view draws and the judge reads. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cluster_kit.cluster import Cluster
from cluster_kit.engine.containers import Container, Event
from cluster_kit.observe.progress import Entry
from cluster_kit.observe.task_view import State, TaskView, figures, is_work, state_after

CLOCK_SLACK_S = 0.05
"""Engine and task read the same clock, at different resolutions."""


@dataclass(frozen=True)
class RunState:
    """Everything seen of a run so far. `tasks` by name, in task order; times are Unix seconds.

    `sidecars` are the tasks that take no part in the training. The engine starts a failed task
    again up to its `retries` times. `started` is each task's newest start.
    """

    tasks: dict[str, TaskView]
    leader: str
    sidecars: frozenset[str] = frozenset()
    retries: Mapping[str, int] = field(default_factory=dict)
    events: tuple[Event, ...] = ()
    entries: tuple[Entry, ...] = ()
    started: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, cluster: Cluster) -> RunState:
        """Nothing seen yet."""
        return cls(
            {t.name: TaskView(t.name, t.role, str(t.ip), t.gpus) for t in cluster.tasks},
            cluster.leader.name,
            frozenset(task.name for task in cluster.sidecars),
            {t.name: cluster.restarts(t) for t in cluster.tasks},
        )

    def with_event(self, event: Event) -> RunState:
        """After one more event of the engine's; those of other containers change nothing."""
        task = self.tasks.get(event.task)
        if task is None:
            return self
        started = self.started
        if event.action == "start":
            restarts = task.restarts + (event.task in started)
            started = {**started, event.task: event.time}
            state = replace(self, started=started)._said_since(task.name)
            task = replace(task, state=state, exit_code=None, restarts=restarts)
        elif event.action == "die":
            state = State.RESTARTING if self._comes_back(event) else State.ENDED
            task = replace(task, state=state, exit_code=event.exit_code)
        elif event.action == "pause":
            task = replace(task, state=State.PAUSED)
        elif event.action == "unpause":
            task = replace(task, state=self._said_since(task.name))
        tasks = {**self.tasks, task.name: task}
        return replace(self, tasks=tasks, started=started, events=(*self.events, event))

    def with_entry(self, entry: Entry) -> RunState:
        """After one more line of a task's progress file."""
        entries = (*self.entries, entry)
        task = self.tasks.get(entry.task)
        if task is None:
            return replace(self, entries=entries)
        state = task.state
        if self._in_this_life(entry):
            state = state_after(state, entry)
        task = replace(task, state=state, **figures(entry))
        return replace(self, tasks={**self.tasks, task.name: task}, entries=entries)

    def _comes_back(self, death: Event) -> bool:
        """Whether the engine will start the task again: not what was stopped by hand."""
        since = self.started.get(death.task, 0.0)
        by_hand = any(
            (event.task, event.action) == (death.task, "kill") and event.time >= since
            for event in self.events
        )
        left = self.retries.get(death.task, 0) - self.tasks[death.task].restarts
        return left > 0 and bool(death.exit_code) and not by_hand

    def _said_since(self, task: str) -> State:
        state = State.RUNNING
        for entry in self.entries:
            if entry.task == task and self._in_this_life(entry):
                state = state_after(state, entry)
        return state

    def _in_this_life(self, entry: Entry) -> bool:
        return entry.time >= self.started.get(entry.task, 0.0) - CLOCK_SLACK_S

    def last(self, task: str, event: str) -> Entry | None:
        """The newest entry of this kind by this task, None where there is none."""
        own = (e for e in reversed(self.entries) if e.task == task and e.event == event)
        return next(own, None)

    def ended_for_good(self, task: str) -> Entry | None:
        """A supervisor's last word, if it said one after its container's last start."""
        end = self.last(task, "end")
        return end if end is not None and self._in_this_life(end) else None

    def left_failed(self, task: str) -> list[Entry]:
        """The failures in which a task ended, oldest first; [] where it went on after the last."""
        own = [entry for entry in self.entries if entry.task == task]
        failures = [e for e in own if e.event == "end" and e.fields.get("reason") == "failed"]
        if not failures:
            return []
        later = own[own.index(failures[-1]) + 1 :]
        return [] if any(map(_goes_well, later)) else failures

    def over(self, task: str) -> bool:
        """Whether a task has nothing left to do after the leader's end: it has ended as well, or it
        is started again too late. A sidecar may still have a good training's model to score."""
        state = self.tasks[task].state
        if state is State.ENDED:
            return True
        if task in self.sidecars and self.tasks[self.leader].exit_code == 0:
            return False
        ends = [e.time for e in self.events if (e.task, e.action) == (self.leader, "die")]
        return state is State.RESTARTING or self.started.get(task, 0.0) > max(ends, default=0.0)

    def devices(self, task: str) -> list[str] | None:
        """The GPUs that TensorFlow showed on a task, None where none were looked for."""
        for entry in reversed(self.entries):
            if entry.event == "devices" and entry.fields.get("of", entry.task) == task:
                sees = entry.fields.get("sees")
                return [str(device) for device in sees] if isinstance(sees, list) else None
        return None

    def metrics(self) -> dict[str, Any]:
        """Final figures by name, the newest of each."""
        newest: dict[str, Any] = {}
        for entry in self.entries:
            if entry.event == "metrics":
                newest |= entry.fields
        return newest


def _goes_well(entry: Entry) -> bool:
    """Whether a task that says this trains, or has ended well; over the job's end it has not."""
    if entry.event != "end":
        return is_work(entry)
    well = entry.fields.get("reason") in ("finished", "cut-off")
    return well and not entry.fields.get("after_job")


def from_containers(containers: Iterable[Container], entries: Sequence[Entry]) -> list[TaskView]:
    """The tasks of a cluster that nobody watched, in the order of their containers: as RunState
    would show them.

    Args:
        entries: of all tasks' progress files, oldest first, since the containers were created.
    """
    return [_view(c, [entry for entry in entries if entry.task == c.name]) for c in containers]


def _view(container: Container, entries: Sequence[Entry]) -> TaskView:
    state = State.of_engine(container.state)
    shown: dict[str, Any] = {}
    for entry in entries:
        if entry.time >= container.started - CLOCK_SLACK_S:
            state = state_after(state, entry)
        shown |= figures(entry)
    # The engine counts a restart before it happens, and none of a leader that `up` starts again.
    counted = container.restarts - (state is State.RESTARTING)
    lives = sum(e.event == "start" and e.fields.get("attempt") == 1 for e in entries)
    return TaskView(
        name=container.name,
        role=container.role,
        ip=container.ip,
        gpus=container.gpus,
        state=state,
        exit_code=container.exit_code,
        restarts=max(counted, lives - 1),
        **shown,
    )
