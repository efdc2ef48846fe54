"""Injects a drill's faults into a run while it is watched, each at its moment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from cluster_kit.drill.able import refuse_if_unable
from cluster_kit.drill.calm import calm_since, over_at
from cluster_kit.drill.inject import inject, mend
from cluster_kit.drill.kinds import KINDS
from cluster_kit.drill.moments import ended_at, is_due, saved_at
from cluster_kit.drill.plan import Injected, Planned
from cluster_kit.drill.scenario import CHECKPOINT
from cluster_kit.errors import EngineError
from cluster_kit.observe.state import RunState
from cluster_kit.observe.task_view import State
from cluster_kit.platforms.engine import Container, Engine
from cluster_kit.resolved import Cluster
from cluster_kit.util.clock import Clock

AGAIN_S = 1.0
"""Between two tries of a fault that the engine refuses."""
BACKUP = "backup"
"""What a program goes on from if there is one: other checkpoints are for the evaluator then."""


class Director:
    """The observer of a drill's run. `done` are the faults injected so far, in that order.

    Args:
        planned: makes the faults once the cluster is known, or raises KitError.
        say: is told of each fault.
    """

    def __init__(
        self,
        clock: Clock,
        planned: Callable[[Cluster], Sequence[Planned]],
        say: Callable[[str], None],
    ) -> None:
        self._clock = clock
        self.cluster: Cluster | None = None
        self.faults: tuple[Planned, ...] = ()
        self.seen = RunState({}, "")
        self.done: list[Injected] = []
        self.refusals: dict[Planned, str] = {}
        """Why a fault could not be injected yet."""
        self._not_before: dict[Planned, float] = {}
        self._planned = planned
        self._say = say
        self._pending: list[Planned] = []
        self._to_mend: list[Injected] = []

    def planned(self, cluster: Cluster) -> None:
        """Plan the faults; raises KitError if the scenario does not fit the cluster."""
        self.cluster = cluster
        self.faults = tuple(self._planned(cluster))
        self._pending = list(self.faults)

    def ready(self, engine: Engine, cluster: Cluster) -> None:
        """Raises KitError if this host cannot do what was planned."""
        refuse_if_unable(engine, cluster, self.faults)

    def observe(self, engine: Engine, cluster: Cluster, seen: RunState) -> None:
        """Inject what is due, and mend what has lasted long enough. Raises nothing."""
        self.seen = seen
        if ended_at(seen) is not None and seen.tasks[seen.leader].state is State.ENDED:
            return
        now = self._clock.time()
        over = [one for one in self._to_mend if now >= over_at(one, seen)]
        pending = [f for f in self._pending if now >= self._not_before.get(f, 0.0)]
        by_file = any(fault.at.after == CHECKPOINT for fault in pending)
        timely = [f for f in pending if f.at.after != CHECKPOINT]
        due = [fault for fault in timely if self._is_due(fault, now)]
        if not (over or due or by_file):
            return
        try:
            containers = {c.name: c for c in engine.containers(cluster.name)}
        except EngineError:
            return  # whoever watches the run waits for the engine, or gives it up
        if by_file and _saved_at(containers.get(seen.leader), seen) is not None:
            due += [fault for fault in pending if fault.at.after == CHECKPOINT]
        for injected in over:
            self._mend(engine, cluster, containers.get(injected.fault.task), injected)
        for fault in due:
            self._inject(engine, cluster, containers, fault)

    def _is_due(self, fault: Planned, now: float) -> bool:
        first = fault.number == min(one.number for one in self._pending)
        calm = fault.at.calm is not None and first
        since = calm_since(self.seen, self.done) if calm else None
        return is_due(fault.at, self.seen, now, saved=False, calm_since=since)

    def _inject(
        self,
        engine: Engine,
        cluster: Cluster,
        containers: Mapping[str, Container],
        fault: Planned,
    ) -> None:
        """Now if the container runs; else it is tried again at the next look."""
        container = containers.get(fault.task)
        if container is None or container.state != State.RUNNING:
            state = container.state if container else "gone"
            self.refusals[fault] = f"{fault.task} was {state} from its moment on"
            return
        saved = _saved_at(containers.get(self.seen.leader), self.seen)
        moment = self._clock.time()
        try:
            inject(engine, cluster, container, fault)
        except EngineError as error:
            self.refusals[fault] = error.message
            self._not_before[fault] = moment + AGAIN_S
            return
        self._pending.remove(fault)
        self.refusals.pop(fault, None)
        self.done.append(Injected(fault, moment, saved))
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


def _saved_at(leader: Container | None, seen: RunState) -> float | None:
    """Unix seconds of the newest checkpoint of this run, None if there is none."""
    starts = [e.time for e in seen.events if (e.task, e.action) == (seen.leader, "start")]
    if leader is None or not leader.output or not starts:
        return None
    output = Path(leader.output)
    backup = saved_at(output, min(starts), BACKUP)
    return saved_at(output, min(starts)) if backup is None else backup
