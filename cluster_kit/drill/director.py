"""Injects a drill's faults into a run while it is watched, each at its moment."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cluster_kit.cluster import Cluster
from cluster_kit.drill.inject import inject, mend
from cluster_kit.drill.kinds import KINDS
from cluster_kit.drill.moments import ended_at, has_saved, is_due
from cluster_kit.drill.plan import Planned
from cluster_kit.drill.scenario import CHECKPOINT
from cluster_kit.engine.containers import Container
from cluster_kit.engine.interface import Engine
from cluster_kit.errors import EngineError
from cluster_kit.observe.state import RunState
from cluster_kit.observe.task_view import State


@dataclass(frozen=True)
class Injected:
    """A fault that was injected at `time` (Unix seconds)."""

    fault: Planned
    time: float


class Director:
    """The observer of a drill's run. `done` are the faults injected so far, in that order.

    Args:
        planned: makes the faults once the cluster is known, or raises KitError.
        say: is told of each fault.
    """

    def __init__(
        self, planned: Callable[[Cluster], Sequence[Planned]], say: Callable[[str], None]
    ) -> None:
        self.faults: tuple[Planned, ...] = ()
        self.seen = RunState({}, "")
        self.done: list[Injected] = []
        self.refusals: dict[Planned, str] = {}
        """Why a fault could not be injected yet."""
        self._planned = planned
        self._say = say
        self._pending: list[Planned] = []
        self._to_mend: list[Injected] = []

    def planned(self, cluster: Cluster) -> None:
        """Plan the faults; raises KitError if the scenario does not fit the cluster."""
        self.faults = tuple(self._planned(cluster))
        self._pending = list(self.faults)

    def observe(self, engine: Engine, cluster: Cluster, seen: RunState) -> None:
        """Inject what is due, and mend what has lasted long enough. Raises nothing."""
        self.seen = seen
        if ended_at(seen) is not None and seen.tasks[seen.leader].state is State.ENDED:
            return
        now = time.time()
        over = [i for i in self._to_mend if now >= i.time + (i.fault.lasts or 0.0)]
        by_file = any(fault.at.after == CHECKPOINT for fault in self._pending)
        timely = [f for f in self._pending if f.at.after != CHECKPOINT]
        due = [fault for fault in timely if is_due(fault.at, seen, now, saved=False)]
        if not (over or due or by_file):
            return
        try:
            containers = {c.name: c for c in engine.containers(cluster.name)}
        except EngineError:
            return  # whoever watches the run waits for the engine, or gives it up
        if by_file and _has_saved(containers.get(seen.leader), seen):
            due += [fault for fault in self._pending if fault.at.after == CHECKPOINT]
        for injected in over:
            self._mend(engine, cluster, containers.get(injected.fault.task), injected)
        for fault in due:
            self._inject(engine, cluster, containers.get(fault.task), fault)

    def _inject(
        self, engine: Engine, cluster: Cluster, container: Container | None, fault: Planned
    ) -> None:
        """Now if the container runs; else it is tried again at the next look."""
        if container is None or container.state != State.RUNNING:
            state = container.state if container else "gone"
            self.refusals[fault] = f"{fault.task} was {state} from its moment on"
            return
        moment = time.time()
        try:
            inject(engine, cluster, container, fault)
        except EngineError as error:
            self.refusals[fault] = error.message
            return
        self._pending.remove(fault)
        self.refusals.pop(fault, None)
        self.done.append(Injected(fault, moment))
        if fault.lasts or KINDS[fault.kind].at_once:
            self._to_mend.append(self.done[-1])
        self._say(f"drill: {fault}")

    def _mend(
        self, engine: Engine, cluster: Cluster, container: Container | None, injected: Injected
    ) -> None:
        if container is not None:
            try:
                mend(engine, cluster, container, injected.fault)
            except EngineError as error:
                self._say(f"drill: {injected.fault} could not be ended: {error.message}")
        self._to_mend.remove(injected)


def _has_saved(leader: Container | None, seen: RunState) -> bool:
    if leader is None or not leader.output or seen.leader not in seen.started:
        return False
    return has_saved(Path(leader.output), seen.started[seen.leader])
