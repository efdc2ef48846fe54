"""What a run showed while it ran: a value that the view draws and the judge reads."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from cluster_kit.cluster import Cluster
from cluster_kit.engine.containers import Event
from cluster_kit.observe.progress import Entry
from cluster_kit.roles import ROLES

CRASH_CODES = (137, 139)


@dataclass(frozen=True)
class TaskView:
    """One task as it stands: what the status table shows."""

    name: str
    role: str
    ip: str
    gpus: tuple[str, ...]
    state: str = "created"
    exit_code: int | None = None
    restarts: int = 0
    step: int | None = None
    steps_per_s: float | None = None
    loss: float | None = None
    accuracy: float | None = None
    map_50: float | None = None
    checkpoint: str | None = None
    """The one that an evaluator has scored last."""


@dataclass(frozen=True)
class Observed:
    """Everything seen so far. `tasks` by name, in task order; times are Unix seconds."""

    tasks: dict[str, TaskView]
    events: tuple[Event, ...] = ()
    entries: tuple[Entry, ...] = ()
    starts: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, cluster: Cluster) -> Observed:
        """Nothing seen yet."""
        return cls({t.name: TaskView(t.name, t.role, str(t.ip), t.gpus) for t in cluster.tasks})

    def with_event(self, event: Event) -> Observed:
        """After one more event of the engine's."""
        task = self.tasks.get(event.task)
        if task is None:
            return self
        starts = self.starts
        if event.action == "start":
            count = starts.get(event.task, 0) + 1
            starts = {**starts, event.task: count}
            task = replace(task, state="running", exit_code=None, restarts=count - 1)
        elif event.action == "die":
            task = replace(task, state="ended", exit_code=event.exit_code)
        tasks = {**self.tasks, task.name: task}
        return replace(self, tasks=tasks, starts=starts, events=(*self.events, event))

    def with_entry(self, entry: Entry) -> Observed:
        """After one more line of a task's progress file."""
        entries = (*self.entries, entry)
        task = self.tasks.get(entry.task)
        if task is None:
            return replace(self, entries=entries)
        task = replace(task, state=_state_after(entry, task.state), **figures(entry))
        return replace(self, tasks={**self.tasks, task.name: task}, entries=entries)

    def last(self, task: str, event: str) -> Entry | None:
        """The newest entry of this kind by this task."""
        found = (e for e in reversed(self.entries) if e.task == task and e.event == event)
        return next(found, None)

    def ended_for_good(self, task: str) -> Entry | None:
        """A supervisor's last word, if it said one after its container's last start."""
        end, started = self.last(task, "end"), self._newest(task, "start")
        return end if end is not None and end.time >= started - CLOCK_SLACK_S else None

    def left_failed(self, task: str) -> list[Entry]:
        """The failures in which a task ended, oldest first; [] where it went on after the last."""
        own = [entry for entry in self.entries if entry.task == task]
        failures = [e for e in own if e.event == "end" and e.fields.get("reason") == "failed"]
        if not failures:
            return []
        later = own[own.index(failures[-1]) + 1 :]
        return [] if any(map(_goes_well, later)) else failures

    def over(self, task: str, leader: str) -> bool:
        """Whether a task has nothing left to do after its leader's end: it has ended as well, or it
        was started again too late. An evaluator may still have a good training's model to score."""
        if self.tasks[task].state == "ended":
            return True
        if ROLES[self.tasks[task].role].sidecar and self.tasks[leader].exit_code == 0:
            return False
        return self._newest(task, "start") > self._newest(leader, "die")

    def _newest(self, task: str, action: str) -> float:
        times = (e.time for e in self.events if (e.task, e.action) == (task, action))
        return max(times, default=0)

    def devices(self, task: str) -> list[str] | None:
        """The GPUs that TensorFlow showed on a task, None where nobody looked."""
        for entry in reversed(self.entries):
            if entry.event == "devices" and entry.fields.get("of", entry.task) == task:
                sees = entry.fields.get("sees")
                return [str(device) for device in sees] if isinstance(sees, list) else None
        return None

    def metrics(self) -> dict[str, Any]:
        """Final figures by name, the newest of each."""
        found: dict[str, Any] = {}
        for entry in self.entries:
            if entry.event == "metrics":
                found |= entry.fields
        return found


def _state_after(entry: Entry, state: str) -> str:
    """An ended task stays so: its last lines are often read after the engine's word of its end."""
    if state == "ended":
        return state
    if entry.event == "ready":
        return "ready" if state == "running" else state
    return _STATES.get(entry.event, state)


def _goes_well(entry: Entry) -> bool:
    """Whether a task that says this trains, or has ended well; over the job's end it has not."""
    if entry.event != "end":
        return entry.event in _STATES
    well = entry.fields.get("reason") in ("finished", "cut-off")
    return well and not entry.fields.get("after_job")


_STATES = {"step": "training", "epoch": "training", "evaluation": "scoring"}


def figures(entry: Entry) -> dict[str, Any]:
    """What a status table shows of an entry; a user's program may have written anything there."""
    found: dict[str, Any] = {
        key: value
        for key, value in entry.fields.items()
        if key in _FIGURES
        and isinstance(value, int | float)
        and not isinstance(value, bool)
        and abs(value) < _HUGE
    }
    checkpoint = entry.fields.get("checkpoint")
    if entry.event == "evaluation" and isinstance(checkpoint, str) and len(checkpoint) <= _LONG:
        found["checkpoint"] = checkpoint
    return found


_FIGURES = ("step", "steps_per_s", "loss", "accuracy", "map_50")
_HUGE = 1e30
_LONG = 40

CLOCK_SLACK_S = 0.05
"""Engine and task read the same clock, at different resolutions."""
