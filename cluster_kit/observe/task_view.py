"""A task's row in tables: its state, the GPUs that it found, whether others wait for it. Pure."""

from __future__ import annotations

import math
import signal
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from cluster_kit.contract.endings import NOT_FAILED
from cluster_kit.contract.events import (
    WAITING,
    Devices,
    End,
    Epoch,
    Evaluation,
    Event,
    Failure,
    Phase,
    Ready,
    Retry,
    Scoring,
    Start,
    Step,
    Straggled,
    Straggling,
)
from cluster_kit.observe.hot_ps import Hot
from cluster_kit.observe.progress import HUGE, Entry, figures_of, number
from cluster_kit.observe.usage import Usage

LONGEST_S = 366 * 86400.0
"""Seconds; no run lasts longer, so a longer time counts as unknown."""
MOST_LASTING = 20
"""Maximum number of open periods of one task; a leader reports each only once."""
_ANEW = (Start, Ready, End)
"""Events of a task that end earlier reports about it."""


@dataclass(frozen=True)
class Straggler:
    """A task that is a straggler since `since` (Unix seconds); None for what is unknown.

    `by` is the leader that reports it, and `message` its text. `others_steps_per_s` is the median
    of the others, `share` that of the task in all steps (0 to 1), `slowed` the factor by which its
    CPU limit slows it, where steps do not show it. `cause` is cpu-limit, bandwidth-limit, memory or
    unknown; `limit` is in CPUs or bits per second.
    """

    since: float
    by: str
    steps_per_s: float | None
    others_steps_per_s: float | None
    share: float | None
    slowed: float | None
    cause: str
    limit: float | None
    message: str


@dataclass(frozen=True)
class Period:
    """A period in which a task was a straggler; `until` (Unix seconds) is None if the leader has
    not reported its end."""

    task: str
    begin: Straggler
    until: float | None
    share: float | None


def straggler(entry: Entry, begun: Straggling) -> Straggler:
    """The straggler that an entry reports."""
    seconds = begun.seconds or 0.0
    return Straggler(
        since=entry.time - (seconds if 0.0 <= seconds <= LONGEST_S else 0.0),
        by=entry.task,
        steps_per_s=number(begun.steps_per_s),
        others_steps_per_s=number(begun.others_steps_per_s),
        share=number(begun.share),
        slowed=number(begun.slowed),
        cause=str(begun.cause),
        limit=number(begun.limit),
        message=begun.message or "",
    )


def after(found: Mapping[str, Straggler], entry: Entry) -> Mapping[str, Straggler]:
    """The stragglers by name after one more entry of any task; `found` if that changes nothing."""
    if isinstance(entry.event, Straggling):
        return {**found, str(entry.event.of): straggler(entry, entry.event)}
    left = {task: one for task, one in found.items() if not _ends(entry, task, one.by)}
    return left if len(left) < len(found) else found


def current(entries: Iterable[Entry]) -> Mapping[str, Straggler]:
    """The stragglers by name after these entries, oldest first."""
    stragglers: Mapping[str, Straggler] = {}
    for entry in entries:
        stragglers = after(stragglers, entry)
    return stragglers


def periods(entries: Sequence[Entry]) -> list[Period]:
    """Every period in which a task was a straggler, oldest first."""
    all_periods: list[Period] = []
    lasting: dict[str, list[int]] = {}  # by task: the indexes in `found` of its open periods
    for entry in entries:
        event = entry.event
        if not isinstance(event, (Straggling, Straggled, *_ANEW)):
            continue
        for task, at_all in lasting.items():
            over = [at for at in at_all if _ends(entry, task, all_periods[at].begin.by)]
            for at in over:
                share = all_periods[at].share
                if isinstance(event, Straggled):
                    share = number(event.share)
                all_periods[at] = replace(all_periods[at], until=entry.time, share=share)
            lasting[task] = [at for at in at_all if at not in over]
        if isinstance(event, Straggling):
            task, begin = str(event.of), straggler(entry, event)
            if len(lasting.setdefault(task, [])) < MOST_LASTING:
                lasting[task].append(len(all_periods))
                all_periods.append(Period(task, begin, None, begin.share))
    return all_periods


def _ends(entry: Entry, task: str, leader: str) -> bool:
    """Whether this entry ends the period: the leader reports it, or the task or the leader
    restarts."""
    if isinstance(entry.event, Straggled):
        return entry.event.of == task
    return isinstance(entry.event, _ANEW) and entry.task in (task, leader)


def note(period: Period) -> str:
    """A sentence; the times of day are the host's."""
    since = datetime.fromtimestamp(period.begin.since).strftime("%H:%M:%S")
    if period.until is None:
        return f"{period.begin.message} (from {since} on)"
    until = datetime.fromtimestamp(period.until).strftime("%H:%M:%S")
    share = "" if period.share is None else f", with {period.share:.0%} of the steps"
    seconds = period.until - period.begin.since
    return f"{period.begin.message} (from {since} to {until}, {seconds:.0f} s{share})"


class State(StrEnum):
    """The state of a task, in the words of the live table and of `status`."""

    CREATED = "created"
    """Its container exists, but was never started."""
    RUNNING = "running"
    """Started; it has not reported anything yet."""
    READY = "ready"
    """A server that listens, or a leader whose servers all answer."""
    TRAINING = "training"
    SCORING = "scoring"
    WAITING = "waiting"
    """An evaluator that waits for the next checkpoint, or a leader for the tasks that decide."""
    PAUSED = "paused"
    """Frozen by a user: `docker pause`."""
    RESTARTING = "restarting"
    """It failed, and the engine is about to restart it."""
    ENDED = "ended"

    @classmethod
    def of_engine(cls, status: str) -> State:
        """The state for an engine's status of a container; `exited`, `dead`, `removing`: ENDED."""
        return cls(status) if status in _SHARED else cls.ENDED


_SHARED = (State.CREATED, State.RUNNING, State.PAUSED, State.RESTARTING)
KILLED = 128 + signal.SIGKILL
GOOD_CODES = (None, *NOT_FAILED)
"""Exit codes of a task that has not failed: it runs, ended well, or was stopped by SIGTERM."""
ALIVE = (State.RUNNING, State.READY, State.TRAINING, State.SCORING, State.WAITING)
_STANDING = (State.PAUSED, State.RESTARTING)
_REPORTED = {Step: State.TRAINING, Epoch: State.TRAINING, Evaluation: State.SCORING,
             Scoring: State.SCORING}  # fmt: skip
"""The state after each event of a task; `ready` counts only before these."""


@dataclass(frozen=True)
class TaskView:
    """One task's row of the status table.

    `gpus` are what the engine was asked for, `gpus_seen` what TensorFlow found (None if it was not
    asked), `gpu_problem` how they differ, "" if they do not. `exit_code` is that of its last end,
    None while it runs. `step` is the global one, `own_steps` are those that the task itself has
    made since its program started (a server: its leader's), `steps_before` those before that.
    `stepped_at` is when they were last reported, `every_s`
    the seconds between the last two reports, `counted` whether the kit counts them, since the
    program reports none. `checkpoint` is the last one that an evaluator has
    scored; `straggler` is None unless the task is one now, `hot` unless it is a ps that holds the
    job up now. `usage` is what it uses now, None if it does not run. `out_of_memory` is whether a
    process of it was killed because its memory limit was reached.
    """

    name: str
    role: str
    ip: str
    gpus: tuple[str, ...]
    state: State = State.CREATED
    exit_code: int | None = None
    restarts: int = 0
    step: int | None = None
    own_steps: int | None = None
    steps_before: int = 0
    steps_per_s: float | None = None
    stepped_at: float | None = None
    every_s: float | None = None
    counted: bool = False
    loss: float | None = None
    accuracy: float | None = None
    map_50: float | None = None
    checkpoint: str | None = None
    straggler: Straggler | None = None
    hot: Hot | None = None
    usage: Usage | None = None
    gpus_seen: tuple[str, ...] | None = None
    gpu_problem: str = ""
    out_of_memory: bool = False

    @property
    def state_text(self) -> str:
        """The state, with its exit code if it has one, and the cause if that is known: `training`,
        `ended (1)`, or `restarting (137: out of memory)`."""
        if self.exit_code is None:
            return self.state
        cause = ": out of memory" if self.out_of_memory and self.exit_code == KILLED else ""
        return f"{self.state} ({self.exit_code}{cause})"

    @property
    def diverged(self) -> bool:
        """Whether the last loss is NaN or infinite."""
        return self.loss is not None and not math.isfinite(self.loss)

    @property
    def shown_step(self) -> int | None:
        """The global step; if the task has none, as a coordinator's worker, its own steps."""
        return self.own_steps if self.step is None else self.step

    @property
    def all_own_steps(self) -> int:
        """The steps that the task has made, those before a restart included."""
        return self.steps_before + (self.own_steps or 0)

    @property
    def shown_speed(self) -> float | None:
        """The steps per second that the task reported last, also if it has ended well; None if it
        stands, has failed or was stopped."""
        has_failed = self.state is State.ENDED and self.exit_code
        return None if self.state in _STANDING or has_failed else self.steps_per_s

    @property
    def shown_usage(self) -> Usage | None:
        """What the task uses now: a frozen one only its memory."""
        if self.usage is None or self.state is not State.PAUSED:
            return self.usage
        return Usage(self.usage.memory)

    @property
    def lags(self) -> bool:
        """Whether the task works, and is a straggler."""
        return self.straggler is not None and self.state in ALIVE

    @property
    def is_hot(self) -> bool:
        """Whether the task is a ps that works, and holds the job up."""
        return self.hot is not None and self.state in ALIVE


NO_SPEED: Mapping[str, Any] = dict.fromkeys(("steps_per_s", "stepped_at", "every_s"))
"""The fields of a task that has reported no step since it began."""
STANDS_S, STILL_S = 60.0, 5.0
STANDS_STEPS = 5
"""Steps are reported at about equal intervals: none are made if none is reported for STILL_S, and
for the time of STANDS_STEPS steps and of as many intervals. While the interval is not known, the
kit reports each step that it counts within STANDS_S."""


def at_its_speed(view: TaskView, now: float) -> TaskView:
    """The view with the speed 0 if no step was reported for long; `now` in Unix seconds."""
    if view.stepped_at is None or not view.steps_per_s:
        return view
    if view.every_s is None and not view.counted:
        return view  # a program that reports steps itself may do so at long intervals
    still_s = STANDS_S if view.every_s is None else max(STILL_S, STANDS_STEPS * view.every_s)
    stands_s = max(still_s, STANDS_STEPS / view.steps_per_s)
    return replace(view, steps_per_s=0.0) if now - view.stepped_at > stands_s else view


def is_work(entry: Entry) -> bool:
    """Whether the entry shows that its task trains or scores."""
    return type(entry.event) in _REPORTED


def state_after(state: State, entry: Entry) -> State:
    """The state of a task after an entry that it wrote since its last start.

    A task that does not run keeps its state, since its last lines are often read after its end
    event. A task whose program has ended for good has ended, although its container stays.
    """
    if state not in ALIVE:
        return state
    if isinstance(entry.event, End) and entry.event.stays:
        return State.ENDED
    if begins_anew(entry.event):
        return State.RUNNING
    if isinstance(entry.event, Ready):
        return State.READY if state is State.RUNNING else state
    if isinstance(entry.event, Scoring) and entry.event.pending == 0:
        return State.WAITING
    if isinstance(entry.event, Phase) and entry.event.name == WAITING:
        return State.WAITING
    return _REPORTED.get(type(entry.event), state)


def begins_anew(event: Event) -> bool:
    """Whether a program begins, or has failed and will begin again: it has made no step yet."""
    return isinstance(event, Start | Failure | Retry)


def idle(view: TaskView) -> TaskView:
    """The view of a server whose leader's program begins: it has done nothing yet."""
    state = State.READY if view.state is State.TRAINING else view.state
    return replace(view, state=state, own_steps=None, steps_before=0, **NO_SPEED)


def code_of(event: Event | None, otherwise: int | None = None) -> int | None:
    """The exit code in the `end` of a program that has ended for good while its task stays; for
    any other event `otherwise`."""
    if isinstance(event, End) and event.stays and event.exit_code is not None:
        return int(event.exit_code)
    return otherwise


def figures(entry: Entry, before: Mapping[str, Any]) -> dict[str, Any]:
    """The values of an entry that a table shows, by field of TaskView; {} if there are none.

    `before` are the fields as of the task's earlier entries.

    A loss that is not finite is shown: the training has diverged.
    """
    reported_figures, event = figures_of(entry.event), entry.event
    numbers = {
        "step": reported_figures.step,
        "own_steps": reported_figures.own_steps,
        "steps_per_s": reported_figures.steps_per_s,
        "accuracy": reported_figures.accuracy,
        "map_50": reported_figures.map_50,
    }
    shown: dict[str, Any] = {
        key: value for key, value in numbers.items() if value is not None and abs(value) < HUGE
    }
    loss = reported_figures.loss
    if loss is not None and (abs(loss) < HUGE or not math.isfinite(loss)):
        shown["loss"] = loss
    own_steps, last = shown.get("own_steps"), before.get("own_steps")
    if own_steps is not None and last is not None and own_steps < last:
        shown["steps_before"] = before.get("steps_before", 0) + last
    if "steps_per_s" in shown:
        stepped_at = before.get("stepped_at")
        shown["counted"] = isinstance(event, Step) and bool(event.counted)
        shown["stepped_at"] = entry.time
        shown["every_s"] = None if stepped_at is None else entry.time - stepped_at
    elif begins_anew(event) or isinstance(event, Ready):
        shown |= NO_SPEED
    scored = event.checkpoint if isinstance(event, Evaluation) else None
    if scored is not None and len(scored) <= _LONG:
        shown["checkpoint"] = scored
    return shown


_LONG = 40


def reported(entry: Entry) -> tuple[str, dict[str, Any]] | None:
    """The task of a `devices` entry, and its fields of TaskView; None for other entries.

    The leader writes the entries of servers; each program writes its own.
    """
    event = entry.event
    if not isinstance(event, Devices):
        return None
    return event.of or entry.task, {"gpus_seen": event.sees, "gpu_problem": event.broken or ""}


def by_task(entries: Sequence[Entry]) -> dict[str, dict[str, Any]]:
    """The newest of these fields, for each of these tasks."""
    return dict(fields for entry in entries if (fields := reported(entry)))
