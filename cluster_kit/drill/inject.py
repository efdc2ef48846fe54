"""Breaks a container as a fault says, and mends it when its time is over.

Crash, stop and freeze are done by a process inside the container, as its user: nothing of this
takes rights on the host, and what ends them needs nobody outside. A cut and a slow one are ended
here, or by whoever starts or removes the container: nothing of them is outside of it. For an
out-of-memory kill the limit is lowered to little more than what is used, and a process inside
takes the rest; the limit is back before the task has started again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from cluster_kit.drill.helpers import READY, helper_of, program_of
from cluster_kit.drill.plan import Planned
from cluster_kit.errors import EngineError
from cluster_kit.platforms.engine import Container, Engine
from cluster_kit.resolved import Cluster, Task
from cluster_kit.run.inside import KILL_ALL

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
        said = engine.start_helper(cluster.name, helper_of(cluster, container.id, fault))
        if said != READY:
            raise EngineError(f"{fault.kind} is not possible: {said or 'its helper said nothing'}")
    elif words := script(fault):
        engine.execute(container.id, ("sh", "-c", words))
    else:
        _BY_ENGINE[fault.kind](engine, cluster, container, fault)


def mend(engine: Engine, cluster: Cluster, container: Container, fault: Planned) -> None:
    """End a fault whose time is over, if it is not over by itself; raises EngineError."""
    if program_of(fault):
        return
    task = next(task for task in cluster.tasks if task.name == fault.task)
    if fault.kind == "cut" and not container.attached:
        engine.attach(container.id, cluster.name, task.name, str(task.ip))
    if fault.kind == "slow":
        engine.limit_cpus(container.id, _usual(engine, task))
    if fault.kind == "memory":
        memory = task.memory or int(engine.info()["MemTotal"])
        engine.limit_memory(container.id, memory, swap=True)


def _cut(engine: Engine, cluster: Cluster, container: Container, _fault: Planned) -> None:
    engine.detach(container.id, cluster.name)


def _slow(engine: Engine, _cluster: Cluster, container: Container, fault: Planned) -> None:
    engine.limit_cpus(container.id, fault.cpus)


def _memory(engine: Engine, cluster: Cluster, container: Container, fault: Planned) -> None:
    """Returns when the program has been killed; the limit is still low then."""
    limit = engine.memory_used(container.id) + SPARE_BYTES
    task = next(task for task in cluster.tasks if task.name == fault.task)
    engine.limit_memory(container.id, min(limit, task.memory or limit), swap=False)
    command = ("python3", "-ISc", EXHAUST.read_text(), str(limit))
    said = engine.ask(container.id, command, EXHAUST_S).strip()
    if said:
        mend(engine, cluster, container, fault)
        raise EngineError(f"nothing was killed for its memory: {said.splitlines()[-1]}")


def _usual(engine: Engine, task: Task) -> float:
    """The cores that the task has by its plan; all of the host's if it has no limit."""
    return task.cpus or float(engine.info()["NCPU"])


_BY_ENGINE: Mapping[str, Callable[[Engine, Cluster, Container, Planned], None]]
_BY_ENGINE = MappingProxyType({"cut": _cut, "slow": _slow, "memory": _memory})
