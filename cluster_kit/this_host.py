"""The real `Host`: this machine's clock, processes, engines, locks and GPUs."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from cluster_kit.facts import Gpu, Network
from cluster_kit.host import Host
from cluster_kit.machine import arp_table
from cluster_kit.platform_table import DEFAULT
from cluster_kit.platforms.engine import ContainerSummary, Engine
from cluster_kit.util import process
from cluster_kit.util.locks import Locks

_BOOT = Path("/proc/sys/kernel/random/boot_id")


class SystemClock:
    """The clock of this machine."""

    def time(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def boot(self) -> str:
        try:
            return _BOOT.read_text(encoding="ascii").strip()
        except OSError:
            return ""


def this_host() -> Host:
    """The machine that this process runs on. Only the packages cli, api and testing call this."""
    return Host(
        clock=SystemClock(),
        processes=process,
        connect=_connect,
        glance=_glance,
        locks=Locks(),
        interrupts=process,
        gpus=_gpus,
        no_driver=_no_driver,
        routes=_routes,
        arp_table=arp_table.read,
        widen_arp_table=arp_table.widen,
        image_tag=_image_tag,
    )


def _connect(engine: str = DEFAULT, settings: Mapping[str, Any] | None = None) -> Engine:
    from cluster_kit.platforms.platform import connect

    return connect(engine, settings)


def _glance() -> Sequence[ContainerSummary]:
    from cluster_kit.platforms.docker import docker_socket

    containers = docker_socket.glance()
    if containers is not None:
        return containers
    with contextlib.closing(_connect()) as engine:
        return engine.glance()


def _gpus() -> tuple[Gpu, ...]:
    from cluster_kit.machine.host_facts import gpu_inventory

    return gpu_inventory()


def _no_driver() -> str:
    from cluster_kit.machine.host_facts import driver_problem

    return driver_problem()


def _routes() -> list[Network]:
    from cluster_kit.machine.host_facts import ROUTES, routes_of

    return routes_of(ROUTES)


def _image_tag(variant: Literal["cpu", "gpu"]) -> str:
    from cluster_kit.image.kit_image import image_tag

    return image_tag(variant)
