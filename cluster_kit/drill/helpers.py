"""What breaks a task from a container beside its own: for each fault, that container. Pure.

It has the image of the task, the namespace in which it works, and the rights for that; it keeps the
time by itself, and undoes what it did, whatever becomes of the drill.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from cluster_kit.drill.kinds import DISK, KINDS, PACKETS, SHAPE
from cluster_kit.drill.plan import Planned
from cluster_kit.platforms.engine import Helper
from cluster_kit.resolved import OUTPUT, Cluster

READY = "ready"
"""What it prints as soon as the fault is in force."""
NOBODY = "127.0.0.2"
PROGRAMS: Mapping[str, str] = MappingProxyType(
    {
        PACKETS: "load the kernel's modules as the host's root: `sudo modprobe -a nfnetlink_queue"
        " nft_queue`",
        SHAPE: "load the kernel's modules as the host's root: `sudo modprobe -a sch_tbf sch_ingress"
        " cls_u32 act_mirred ifb`",
        DISK: "it takes a privileged container: use an engine that allows one, and that the host's"
        " root has started",
    }
)
"""Each with what to do if it cannot do its work on a host."""


def program_of(fault: Planned) -> str:
    """Which of them does it; "" if none has to."""
    return PACKETS if fault.sources else KINDS[fault.kind].beside


def helper_of(cluster: Cluster, container_id: str, fault: Planned) -> Helper:
    """What breaks this container."""
    addresses = {task.name: str(task.ip) for task in cluster.tasks}
    program = program_of(fault)
    if program == DISK:
        return _disk(cluster.image, container_id, OUTPUT, fault.lasts)
    if program == SHAPE:
        usual = next(task.bandwidth for task in cluster.tasks if task.name == fault.task)
        return _shape(
            cluster.image, container_id, addresses[fault.task], fault.rate, usual, fault.lasts
        )
    others = fault.sources or [name for name in addresses if name != fault.task]
    loss = {"cut": 1.0, "loss": fault.percent / 100}.get(fault.kind, 0.0)
    delay = fault.delay if fault.kind == "delay" else 0.0
    peers = [addresses[name] for name in others]
    return _packets(cluster.image, container_id, peers, loss, delay, fault.lasts)


def trial_of(program: str, image: str) -> Helper:
    """The same on a container of its own, which nobody misses, for a moment."""
    if program == DISK:
        return _disk(image, "", "/dev/shm", 0.01)
    if program == SHAPE:
        return _shape(image, "", "127.0.0.1", 10**9, None, 0.01)
    return _packets(image, "", [NOBODY], 1.0, 0.0, 0.01)


def _packets(
    image: str, joined: str, peers: list[str], loss: float, delay: float, seconds: float | None
) -> Helper:
    asked = {"peers": peers, "seconds": seconds, "loss": loss, "delay": delay}
    command = ("python3", "-ISc", _text("packets"), json.dumps(asked))
    return Helper(image, command, network_of=joined, capabilities=("NET_ADMIN",))


def _shape(
    image: str, joined: str, address: str, rate: int, usual: int | None, seconds: float | None
) -> Helper:
    values = (rate, "-" if usual is None else usual, "-" if seconds is None else f"{seconds:g}")
    command = ("python3", "-P", "-m", "trainer.agent.network.reshape", address, *map(str, values))
    return Helper(image, command, network_of=joined, capabilities=("NET_ADMIN",))


def _disk(image: str, joined: str, directory: str, seconds: float | None) -> Helper:
    asked = {"directory": directory, "seconds": seconds}
    command = ("python3", "-ISc", _text("fill_disk"), json.dumps(asked))
    return Helper(image, command, processes_of=joined, privileged=True)


@cache
def _text(program: str) -> str:
    return (Path(__file__).parent / "inside" / f"{program}.py").read_text()
