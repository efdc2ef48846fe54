"""One task as a table shows it, and the words for where it is in its life. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from cluster_kit.observe.progress import Entry


class State(StrEnum):
    """Where a task is in its life: the words of the live table and of `status`."""

    CREATED = "created"
    """Its container is there and was never started."""
    RUNNING = "running"
    """Started; it has not said anything of its own yet."""
    READY = "ready"
    """A server that listens; a leader whose servers all answer."""
    TRAINING = "training"
    SCORING = "scoring"
    PAUSED = "paused"
    """Frozen by hand: `docker pause`."""
    RESTARTING = "restarting"
    """It failed, and the engine is about to start it again."""
    ENDED = "ended"

    @classmethod
    def of_engine(cls, word: str) -> State:
        """From the engine's word for a container: `exited`, `dead` and `removing` have ended."""
        return cls(word) if word in _SHARED else cls.ENDED


_SHARED = (State.CREATED, State.RUNNING, State.PAUSED, State.RESTARTING)
_ALIVE = (State.RUNNING, State.READY, State.TRAINING, State.SCORING)
_SAID = {"step": State.TRAINING, "epoch": State.TRAINING, "evaluation": State.SCORING}
"""What a task's own word means for its state; `ready` counts only before these."""


@dataclass(frozen=True)
class TaskView:
    """One task as it stands: what the status table shows.

    `exit_code` is that of its last end, None while it runs. `checkpoint` is the one that an
    evaluator has scored last.
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


def is_work(entry: Entry) -> bool:
    """Whether a task that writes this trains or scores."""
    return entry.event in _SAID


def state_after(state: State, entry: Entry) -> State:
    """The state of a task that wrote this in its present life. One that does not run stays so:
    its last lines are often read after the engine's word of its end."""
    if state not in _ALIVE:
        return state
    if entry.event == "ready":
        return State.READY if state is State.RUNNING else state
    return _SAID.get(entry.event, state)


def figures(entry: Entry) -> dict[str, Any]:
    """What a table shows of an entry, by field of TaskView; {} where there is nothing.

    A user's program may have written anything there.
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
