"""One task as tables show it, and its states. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from cluster_kit.observe.progress import Entry
from cluster_kit.observe.stragglers import Straggler
from cluster_kit.observe.usage import Usage


class State(StrEnum):
    """The state of a task, in the words of the live table and of `status`."""

    CREATED = "created"
    """Its container exists and was never started."""
    RUNNING = "running"
    """Started; it has not reported anything yet."""
    READY = "ready"
    """A server that listens, or a leader whose servers all answer."""
    TRAINING = "training"
    SCORING = "scoring"
    PAUSED = "paused"
    """Frozen by hand: `docker pause`."""
    RESTARTING = "restarting"
    """It failed, and the engine is about to restart it."""
    ENDED = "ended"

    @classmethod
    def of_engine(cls, status: str) -> State:
        """From the engine's status of a container; `exited`, `dead` and `removing` are ENDED."""
        return cls(status) if status in _SHARED else cls.ENDED


_SHARED = (State.CREATED, State.RUNNING, State.PAUSED, State.RESTARTING)
GOOD_CODES = (None, 0, 143)
"""Exit codes of a task that has not failed: it runs, ended well, or was stopped by SIGTERM."""
_ALIVE = (State.RUNNING, State.READY, State.TRAINING, State.SCORING)
_REPORTED = {"step": State.TRAINING, "epoch": State.TRAINING, "evaluation": State.SCORING}
"""The state that an event of a task means; `ready` counts only before these."""


@dataclass(frozen=True)
class TaskView:
    """One task's row of the status table.

    `gpus` are what the engine was asked for, `gpus_seen` what TensorFlow found (None if it was not
    asked), `gpu_problem` how they differ, "" if they do not. `exit_code` is that of its last end,
    None while it runs. `checkpoint` is the last one that an evaluator has scored; `straggler` is
    None unless the task is one now. `usage` is what it uses now, None if it does not run.
    """

    name: str
    role: str
    ip: str
    gpus: tuple[str, ...]
    state: State = State.CREATED
    exit_code: int | None = None
    restarts: int = 0
    step: int | None = None
    steps_per_s: float | None = None
    loss: float | None = None
    accuracy: float | None = None
    map_50: float | None = None
    checkpoint: str | None = None
    straggler: Straggler | None = None
    usage: Usage | None = None
    gpus_seen: tuple[str, ...] | None = None
    gpu_problem: str = ""

    @property
    def lags(self) -> bool:
        """Whether the task works, and is a straggler."""
        return self.straggler is not None and self.state in _ALIVE


def is_work(entry: Entry) -> bool:
    """Whether the entry shows that its task trains or scores."""
    return entry.event in _REPORTED


def state_after(state: State, entry: Entry) -> State:
    """The state of a task after an entry that it wrote since its last start.

    A task that does not run keeps its state: its last lines are often read after the event of its
    end.
    """
    if state not in _ALIVE:
        return state
    if entry.event == "ready":
        return State.READY if state is State.RUNNING else state
    return _REPORTED.get(entry.event, state)


def figures(entry: Entry) -> dict[str, Any]:
    """The values of an entry that a table shows, by field of TaskView; {} if there are none.

    A user's program may have written an entry with any values: invalid ones are left out.
    """
    shown: dict[str, Any] = {
        key: value
        for key, value in entry.fields.items()
        if key in _FIGURES
        and isinstance(value, int | float)
        and not isinstance(value, bool)
        and abs(value) < _HUGE
    }
    checkpoint = entry.fields.get("checkpoint")
    if entry.event == "evaluation" and isinstance(checkpoint, str) and len(checkpoint) <= _LONG:
        shown["checkpoint"] = checkpoint
    return shown


_FIGURES = ("step", "steps_per_s", "loss", "accuracy", "map_50")
_HUGE = 1e30
_LONG = 40
