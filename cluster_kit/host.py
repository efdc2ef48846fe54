"""The kit's interface to the machine that it runs on: clock, processes, engines, locks.

The command line, the Python API and the pytest plugin pass one `Host` to all code that waits,
starts a program, connects to an engine or takes a lock; tests pass a fake one.
`this_host.this_host()` returns the real one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from cluster_kit.errors import HostError
from cluster_kit.facts import ArpTable, Gpu, Network
from cluster_kit.platform_table import DEFAULT

if TYPE_CHECKING:
    from cluster_kit.platforms.engine import ContainerSummary, Engine
    from cluster_kit.util.locks import Locks
    from cluster_kit.util.process import Completed


class Clock(Protocol):
    """Returns the time, and sleeps. Tests pass a clock whose time advances only by its `sleep`."""

    def time(self) -> float:
        """Unix seconds: the time of day, which can be set."""
        ...

    def monotonic(self) -> float:
        """Seconds since an arbitrary moment, by a clock that cannot be set."""
        ...

    def sleep(self, seconds: float) -> None:
        """Return after this many seconds."""
        ...

    def boot(self) -> str:
        """An id of the machine's last start, from which `monotonic` counts; "" if there is none."""
        ...


@dataclass(frozen=True)
class Moment:
    """The present moment, for another process: `unix` is the time of day, `ticks` counts from
    `boot`."""

    unix: float
    ticks: float
    boot: str

    def seconds(self, clock: Clock) -> float:
        """Seconds since this moment; by the time of day if the machine was restarted meanwhile."""
        if self.boot and self.boot == clock.boot():
            return clock.monotonic() - self.ticks
        return max(0.0, clock.time() - self.unix)


def moment(clock: Clock, ago_s: float = 0.0) -> Moment:
    """The moment this many seconds ago."""
    return Moment(clock.time() - ago_s, clock.monotonic() - ago_s, clock.boot())


class Processes(Protocol):
    """Starts programs; the functions of the module `util.process` describe each method."""

    def run(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        show: bool = False,
        timeout_s: float | None = None,
        most: int | None = None,
    ) -> Completed: ...

    def stream(self, command: Sequence[str], each: Callable[[str], None]) -> Completed: ...

    def pass_on(
        self, source: Sequence[str], sink: Sequence[str], each: Callable[[int], None]
    ) -> tuple[Completed, Completed]: ...

    def afterwards(self, command: Sequence[str]) -> AbstractContextManager[None]: ...

    def hand_over(self, command: Sequence[str]) -> int: ...

    def start_daemon(self, command: Sequence[str], log_path: str) -> int: ...


class Interrupts(Protocol):
    """What Ctrl-C does; the functions of the module `util.process` describe each method."""

    def interrupt_once(self) -> None: ...

    def ignore(self) -> None: ...


class Connect(Protocol):
    """Connects to an engine that runs containers."""

    def __call__(self, engine: str = DEFAULT, settings: Mapping[str, Any] | None = None) -> Engine:
        """A new connection.

        Args:
            engine: the name of the platform.
            settings: `Cluster.settings` of a particular cluster, if there is one.
        Raises:
            HostError: no engine of this platform answers.
            UsageError: the kit does not start clusters there.
        """
        ...


@dataclass(frozen=True)
class Host:
    """The functions and objects of the machine that the kit uses."""

    clock: Clock
    processes: Processes
    connect: Connect
    glance: Callable[[], Sequence[ContainerSummary]]
    """Returns what `glance` of the Docker engine does, but faster. Raises KitError."""
    locks: Locks
    interrupts: Interrupts
    gpus: Callable[[], tuple[Gpu, ...]]
    """Returns the GPUs that NVIDIA's driver shows."""
    no_driver: Callable[[], str]
    """Returns the reason why the driver shows no GPU; "" if it gives none."""
    routes: Callable[[], list[Network]]
    """Returns the IPv4 routes, without the default route."""
    arp_table: Callable[[], ArpTable | None]
    """Returns the kernel's ARP table; None if it does not say."""
    widen_arp_table: Callable[[int], None]
    """Lets the ARP table have this many entries until the next boot. Raises OSError."""
    image_tag: Callable[[Literal["cpu", "gpu"]], str]
    """Returns the tag of the kit's own image, which is a hash of what it is built from."""

    def engine_or_none(self) -> Engine | None:
        """The Docker engine of this machine, None if none answers."""
        try:
            return self.connect()
        except HostError:
            return None
