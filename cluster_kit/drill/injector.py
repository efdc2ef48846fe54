"""Breaks a container as a fault says, and mends it when its time is over.

Crash, stop and freeze are done by a process inside the container, as its user: nothing of this
takes rights on the host, and what ends them needs nobody outside. A cut and a slow one are ended
here, or by whoever starts or removes the container: nothing of them is outside of it. For an
out-of-memory kill the limit is lowered to little more than what is used, and a process inside
takes the rest; the limit is back before the task has started again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from cluster_kit.drill.helpers import READY, helper_of, program_of
from cluster_kit.drill.kinds import KINDS
from cluster_kit.drill.plan import Injected, Planned
from cluster_kit.drill.preflight import refuse_if_unable
from cluster_kit.drill.recovery_time import calm_since, over_at
from cluster_kit.drill.scenario import CHECKPOINT
from cluster_kit.drill.triggers import ended_at, is_due, saved_at
from cluster_kit.errors import EngineError
from cluster_kit.observe.state import RunState
from cluster_kit.observe.task_view import State
from cluster_kit.platforms.engine import Container, Engine, reaching
from cluster_kit.resolved import Cluster, Task
from cluster_kit.run.task_exec import KILL_ALL
from cluster_kit.util.clock import Clock

STOP_ALL, GO_ON = "kill -STOP -1", "kill -CONT -1"
TELL = "kill -TERM 1 2>/dev/null || kill -TERM $(cat /proc/1/task/1/children)"
"""Tells the task to end: its init process, or that one's child if it has stayed root."""
EXHAUST = Path(__file__).parent / "inside" / "exhaust_memory.py"
SPARE_BYTES = 64 << 20
"""What a container may use beyond what it uses: the interpreter that takes it is in that, too."""
EXHAUST_S = 15


def script(fault: Planned) -> str:
    """What a shell inside the container does; "" for a fault that comes from the engine. Pure."""
    if fault.kind == "crash":
        return KILL_ALL
    if fault.kind == "stop":
        return f"{TELL}; sleep {fault.grace:g}; {KILL_ALL}"
    if fault.kind == "freeze":
        return f"{STOP_ALL}; sleep {fault.lasts:g}; {GO_ON}" if fault.lasts else STOP_ALL
    return ""


def inject(engine: Engine, cluster: Cluster, container: Container, fault: Planned) -> None:
    """Break the container; raises EngineError."""
    if program_of(fault):
        said = reaching(engine).start_helper(cluster.name, helper_of(cluster, container.id, fault))
        if said != READY:
            raise EngineError(f"{fault.kind} is not possible: {said or 'its helper said nothing'}")
    elif words := script(fault):
        reaching(engine).execute(container.id, ("sh", "-c", words))
    else:
        _BY_ENGINE[fault.kind](engine, cluster, container, fault)


def undo(engine: Engine, cluster: Cluster, container: Container, fault: Planned) -> None:
    """End a fault whose time is over, if it is not over by itself; raises EngineError."""
    if program_of(fault):
        return
    task = next(task for task in cluster.tasks if task.name == fault.task)
    if fault.kind == "cut" and not container.attached:
        reaching(engine).attach(container.id, cluster.name, task.name, str(task.ip))
    if fault.kind == "slow":
        reaching(engine).limit_cpus(container.id, _usual(engine, task))
    if fault.kind == "memory":
        memory = task.memory or int(engine.info()["MemTotal"])
        reaching(engine).limit_memory(container.id, memory, swap=True)


def _cut(engine: Engine, cluster: Cluster, container: Container, _fault: Planned) -> None:
    reaching(engine).detach(container.id, cluster.name)


def _slow(engine: Engine, _cluster: Cluster, container: Container, fault: Planned) -> None:
    reaching(engine).limit_cpus(container.id, fault.cpus)


def _memory(engine: Engine, cluster: Cluster, container: Container, fault: Planned) -> None:
    """Returns when the program has been killed; the limit is still low then."""
    limit = reaching(engine).memory_used(container.id) + SPARE_BYTES
    task = next(task for task in cluster.tasks if task.name == fault.task)
    reaching(engine).limit_memory(container.id, min(limit, task.memory or limit), swap=False)
    command = ("python3", "-ISc", EXHAUST.read_text(), str(limit))
    said = reaching(engine).ask(container.id, command, EXHAUST_S).strip()
    if said:
        undo(engine, cluster, container, fault)
        raise EngineError(f"nothing was killed for its memory: {said.splitlines()[-1]}")


def _usual(engine: Engine, task: Task) -> float:
    """The cores that the task has by its plan; all of the host's if it has no limit."""
    return task.cpus or float(engine.info()["NCPU"])


_BY_ENGINE: Mapping[str, Callable[[Engine, Cluster, Container, Planned], None]]
_BY_ENGINE = MappingProxyType({"cut": _cut, "slow": _slow, "memory": _memory})


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
        """Inject what is due, and undo what has lasted long enough. Raises nothing."""
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
                undo(engine, cluster, container, injected.fault)
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
