"""When a fault is due, by what was observed so far. Pure, but for the look for a checkpoint."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator, Sequence
from math import inf
from pathlib import Path

from cluster_kit.drill.fault_plan import Injected
from cluster_kit.drill.scenario_file import CHECKPOINT, KINDS, At
from cluster_kit.observe import heartbeats
from cluster_kit.observe.heartbeats import HEARD, SILENT
from cluster_kit.observe.progress import Entry
from cluster_kit.observe.state import CLOCK_SLACK_S, RunState
from cluster_kit.observe.task_files import complete
from cluster_kit.observe.task_view import State


def is_due(at: At, seen: RunState, now: float, saved: bool, calm_since: float | None) -> bool:
    """Whether the moment has come.

    Args:
        now: Unix seconds.
        saved: whether a checkpoint has been written in this run.
        calm_since: see `calm.calm_since`; None as long as a fault is to come before this one.
    """
    if at.calm is not None:
        return calm_since is not None and now >= calm_since + at.calm
    if at.seconds is not None:
        ready = ready_at(seen)
        return ready is not None and now >= ready + at.seconds
    if at.epoch is not None:
        epochs = (entry.fields.get("epoch") for entry in seen.entries if entry.event == "epoch")
        return any(isinstance(epoch, int) and epoch >= at.epoch for epoch in epochs)
    if at.step is not None:
        return any(step >= at.step for _, step in steps(seen))
    return saved if at.after == CHECKPOINT else any(e.event == at.after for e in seen.entries)


def ready_at(seen: RunState) -> float | None:
    """Unix seconds at which every task answered for the first time, as the leader says."""
    ready = (e.time for e in seen.entries if (e.task, e.event) == (seen.leader, "ready"))
    return next(ready, None)


def steps(seen: RunState) -> Iterator[tuple[float, int]]:
    """Time (Unix seconds) and global step of each of the leader's reports, oldest first."""
    for entry in seen.entries:
        step = entry.fields.get("step")
        if entry.task == seen.leader and entry.event in ("step", "epoch") and _is_number(step):
            yield entry.time, int(str(step))


def progress(seen: RunState) -> Iterator[tuple[float, int]]:
    """Those of `steps` that are progress: no step again that the one before had in the same start.

    A program that has just gone back may report where it begins, and only then train.
    """
    starts = starts_of(seen)
    told = [(moment, step, bisect(starts, moment)) for moment, step in steps(seen)]
    for before, one, after in zip([None, *told], told, [*told[1:], None], strict=False):
        moment, step, attempt = one
        begins = before is None or before[2] != attempt
        same = after if begins else before
        if same is None or same[1:] != (step, attempt):
            yield moment, step


def starts_of(seen: RunState) -> list[float]:
    """Unix seconds of each start of the leader's program."""
    return [e.time for e in seen.entries if (e.task, e.event) == (seen.leader, "start")]


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def ended_at(seen: RunState) -> float | None:
    """Unix seconds of the leader's last word, None if it has said none since its last start."""
    end: Entry | None = seen.end_entry(seen.leader)
    return None if end is None else end.time


def saved_at(output: Path, since: float, below: str = "") -> float | None:
    """Unix seconds at which the newest checkpoint below the directory was completed, None if none
    was after Unix time `since`."""
    moments = (moment for moment, _ in complete(output, below))
    return max((moment for moment in moments if moment >= since - CLOCK_SLACK_S), default=None)


LOSSES = ("die", "oom", "kill", "start")
"""Of the engine's events, those that tell of a task that was lost, or is back."""
TOLD = ("failure", "retry", "start", SILENT, HEARD)
CUT, SLOW = "cut", "slow"
WELL = (State.RUNNING, State.READY, State.TRAINING, State.SCORING)


def calm_since(seen: RunState, done: Sequence[Injected]) -> float | None:
    """Unix seconds since when all is well; None if it is not.

    Every fault is over, every task runs, none is silent, and the leader has reported progress
    since the last word of any of that.
    """
    ready = ready_at(seen)
    well = all(task.state in WELL for task in seen.tasks.values())
    if ready is None or not well or heartbeats.current(seen):
        return None
    trouble = [
        ready,
        *(over_at(one, seen) for one in done),
        *(event.time for event in seen.events if event.action in LOSSES),
        *(entry.time for entry in seen.entries if entry.event in TOLD),
    ]
    since = max(trouble)
    return next((moment for moment, _ in progress(seen) if moment > since), None)


def over_at(one: Injected, seen: RunState) -> float:
    """Unix seconds at which the fault ends: by its own time, or since its task was started again.

    Infinity as long as neither is known. A container that was cut off has its network again only if
    it was killed for that: one that ends by itself starts without. One that is slow stays so. What
    is done to a program alone need not end its container.
    """
    if one.fault.kind == SLOW or KINDS[one.fault.kind].at_once:
        return one.time + (one.fault.lasts or 0.0)
    later = [e for e in seen.events if e.task == one.fault.task and e.time > one.time]
    kills = [event.time for event in later if event.action == "kill"]
    disconnected = one.fault.kind == CUT and not one.fault.sources
    since = min(kills, default=inf) if disconnected else one.time
    starts = (event.time for event in later if event.action == "start" and event.time > since)
    return min(one.time + (one.fault.lasts or inf), next(starts, inf))
