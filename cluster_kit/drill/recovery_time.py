"""Whether a cluster is well again after the faults so far: the moment of the next one. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from cluster_kit.drill.kinds import KINDS
from cluster_kit.drill.plan import Injected
from cluster_kit.drill.triggers import progress, ready_at
from cluster_kit.observe import heartbeats
from cluster_kit.observe.heartbeats import HEARD, SILENT
from cluster_kit.observe.state import RunState
from cluster_kit.observe.task_view import State

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
