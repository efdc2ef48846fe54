"""The kinds of faults: what each does, and the keys of a fault that it takes. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

PACKETS, SHAPE, DISK = "packets", "shape", "disk"


@dataclass(frozen=True)
class Kind:
    """A kind of fault; `does` is Markdown for the docs. `inject` has what it does to a container.

    `lasts` are the seconds among which a random drill chooses, () if it has no duration;
    `keys` are those of its own.
    """

    name: str
    does: str
    lasts: tuple[float, ...] = ()
    keys: tuple[str, ...] = ()
    beside: str = ""
    """What does it from a container beside the task's, whose rights not every host has: the name of
    one of `helpers.PROGRAMS`. Random drills leave such kinds out: they are the same everywhere."""
    at_once: bool = False
    """Whether what was changed for it is changed back as soon as it has happened."""
    spares_leader: bool = False
    """Whether random drills leave the leader alone: its job would end, as it was told to."""

    def takes(self, key: str) -> bool:
        """Whether a fault of this kind may have the key."""
        return key in self.keys or (key == "for" and bool(self.lasts))


_KINDS = (
    Kind("crash", "SIGKILL for every process in the task's container"),
    Kind(
        "stop",
        "SIGTERM, and SIGKILL after `grace` (10 s), as when a machine is taken away; the task "
        "comes back as after a crash, but a leader that is told to stop ends the job",
        keys=("grace",),
        spares_leader=True,
    ),
    Kind("freeze", "SIGSTOP for every process in the container", lasts=(1.0, 5.0, 30.0)),
    Kind(
        "cut",
        "the container has no network; with `from`, nothing passes between it and those tasks",
        lasts=(1.0, 5.0, 30.0),
        keys=("from",),
    ),
    Kind(
        "slow",
        "the container has only `cpus` cores (0.1)",
        lasts=(5.0, 10.0),
        keys=("cpus",),
    ),
    Kind(
        "memory",
        "the container's memory limit is reached, and the kernel kills the task's program, its "
        "largest process (out of memory); its limit is then as before",
        at_once=True,
    ),
    Kind(
        "delay",
        "what other tasks send to it arrives `delay` later (0.1 s)",
        lasts=(5.0, 10.0),
        keys=("delay",),
        beside=PACKETS,
    ),
    Kind(
        "loss",
        "`percent` of the packets between it and other tasks are lost (5), each way",
        lasts=(5.0, 10.0),
        keys=("percent",),
        beside=PACKETS,
    ),
    Kind(
        "bandwidth",
        "its network has only `rate`, each way (10mbit)",
        lasts=(5.0, 10.0),
        keys=("rate",),
        beside=SHAPE,
    ),
    Kind(
        "disk-full",
        'every write of it below `/output` is answered "No space left on device"',
        lasts=(1.0, 5.0),
        beside=DISK,
    ),
)
KINDS: Mapping[str, Kind] = MappingProxyType({kind.name: kind for kind in _KINDS})
"""By name, in the order in which they are listed."""
