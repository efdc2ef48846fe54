"""Machines for tests: fakes answer what the kit asks its host."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

from cluster_kit.errors import HostError
from cluster_kit.facts import Gpu, Network
from cluster_kit.host import Clock, Host, Processes
from cluster_kit.platforms import platform
from cluster_kit.platforms.engine import ContainerSummary, Engine
from cluster_kit.this_host import SystemClock
from cluster_kit.util.locks import Locks
from cluster_kit.util.process import Completed


def no_engine(*_: object) -> Engine:
    """Connect to nothing: no engine answers."""
    raise HostError("no Docker engine answers", "start it")


class NoProcesses:
    """See `host.Processes`: if a test starts a program, the test fails."""

    def run(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        show: bool = False,
        timeout_s: float | None = None,
        most: int | None = None,
    ) -> Completed:
        return _refused(command)

    def stream(self, command: Sequence[str], each: Callable[[str], None]) -> Completed:
        return _refused(command)

    def pass_on(
        self, source: Sequence[str], sink: Sequence[str], each: Callable[[int], None]
    ) -> tuple[Completed, Completed]:
        return _refused(source)

    def afterwards(self, command: Sequence[str]) -> AbstractContextManager[None]:
        return _refused(command)

    def hand_over(self, command: Sequence[str]) -> int:
        return _refused(command)

    def start_daemon(self, command: Sequence[str], log_path: str) -> int:
        return _refused(command)


def _refused(command: Sequence[str]) -> NoReturn:
    shown = " ".join(command)
    pytest.fail(f"a unit test starts a program ({shown}): give it a fake, or move it to tests/e2e")


class Programs:
    """See `host.Processes`: uses these functions, and for others those of `base`."""

    def __init__(self, base: Processes, **functions: Callable[..., Any]) -> None:
        self._base = base
        self.__dict__.update(functions)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._base, name)


def programs(**functions: Callable[..., Any]) -> Host:
    """Returns a host on which `run`, `stream` ... of `host.Processes` are these functions."""
    return fake_host(processes=Programs(NoProcesses(), **functions))


class NoInterrupts:
    """See `host.Interrupts`: signals are handled as pytest handles them."""

    def interrupt_once(self) -> None:
        pass

    def ignore(self) -> None:
        pass


def _no_place() -> Path:
    pytest.fail("a unit test takes a lock on this machine: give it a folder of its own")


def fake_host(
    connect: Callable[[], Any] = no_engine,
    clock: Clock | None = None,
    processes: Processes | None = None,
) -> Host:
    """Returns a host whose engine is the result of `connect`, on Docker, a swarm or Kubernetes."""

    def connected(engine: str = "compose", settings: Mapping[str, Any] | None = None) -> Engine:
        return platform.connect(engine, settings) if engine == "slurm" else connect()

    def glance() -> Sequence[ContainerSummary]:
        with contextlib.closing(connected()) as engine:
            return engine.glance()

    return Host(
        clock=clock or SystemClock(),
        processes=processes or NoProcesses(),
        connect=connected,
        glance=glance,
        locks=Locks(_no_place),
        interrupts=NoInterrupts(),
        gpus=tuple,
        no_driver=lambda: "no driver",
        routes=list,
        arp_table=lambda: None,
        widen_arp_table=lambda limit: None,
        image_tag=lambda variant: f"cluster-kit/trainer:{variant}-0",
    )


@dataclass
class Machine:
    """The machine of a command line, or of the Python API, in one test; it may be replaced."""

    host: Host

    def connects(self, connect: Callable[[], Any]) -> None:
        """Let this function return the engine from now on."""
        host = fake_host(connect)
        self.host = replace(self.host, connect=host.connect, glance=host.glance)

    def locks_in(self, folder: Path) -> None:
        """Let locks be files in this folder."""
        self.host = replace(self.host, locks=Locks(lambda: folder, str(folder)))

    def has(self, gpus: Sequence[Gpu] = (), routes: Sequence[Network] = ()) -> None:
        """Let these be its GPUs and routes."""
        self.host = replace(self.host, gpus=lambda: tuple(gpus), routes=lambda: list(routes))

    def starts(self, **functions: Callable[..., Any]) -> None:
        """Let these functions replace `run`, `stream` ... of `host.Processes` from now on."""
        self.host = replace(self.host, processes=Programs(self.host.processes, **functions))
