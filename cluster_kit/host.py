"""Gathers `HostFacts`: from the engine, the routing table and NVIDIA's library."""

from __future__ import annotations

import os
from ipaddress import IPv4Network
from pathlib import Path

import pynvml

from cluster_kit.engine import Engine
from cluster_kit.facts import Gpu, HostFacts, Network

ROUTES = Path("/proc/net/route")
WIDEST_ROUTE = 8


def gather(engine: Engine | None) -> HostFacts:
    """The facts of this host. Without an engine, what the operating system alone can tell."""
    user = f"{os.getuid()}:{os.getgid()}"
    networks = [*_routes(ROUTES)]
    if engine is None:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        cpus = os.cpu_count() or 1
        return HostFacts(cpus, memory, user, gpu_inventory(), networks=tuple(networks))
    info = engine.info()
    inventory = gpu_inventory()
    found = engine.networks()
    own = {cidr: cluster for _, cluster, cidr in found if cluster}
    docker_networks = [
        Network(f"Docker network {name}", IPv4Network(cidr, strict=False), cluster)
        for name, cluster, cidr in found
    ]
    # A running cluster shows up twice: as a Docker network and as its bridge's route.
    networks = [
        Network(route.owner, route.subnet, own.get(str(route.subnet), "")) for route in networks
    ]
    return HostFacts(
        cpus=info["NCPU"],
        memory=info["MemTotal"],
        user=user,
        gpus=inventory,
        gpu_refusal=engine.gpu_refusal(inventory[0].uuid) if inventory else "",
        networks=tuple(docker_networks + networks),
    )


def _routes(table: Path) -> list[Network]:
    """IPv4 routes of this host, without the default one. None where there is no /proc.

    A VPN may write the default route as two halves, 0.0.0.0/1 and 128.0.0.0/1: nobody's subnet
    is that wide, so they count as default.

    Source: proc(5), net/route: little-endian hexadecimal destination and mask.
    """
    if not table.exists():
        return []
    routes = []
    for line in table.read_text().splitlines()[1:]:
        device, destination, *_, mask, _mtu, _window, _irtt = line.split()
        prefix = int(mask, 16).bit_count()
        if prefix < WIDEST_ROUTE:
            continue
        address = int.from_bytes(bytes.fromhex(destination), "little")
        subnet = IPv4Network((address, prefix), strict=False)
        routes.append(Network(f"a route of this host ({device})", subnet))
    return routes


def gpu_inventory() -> tuple[Gpu, ...]:
    """NVIDIA GPUs by index, through NVML; none where there is no driver."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return ()
    try:
        return tuple(_gpu(index) for index in range(pynvml.nvmlDeviceGetCount()))
    finally:
        pynvml.nvmlShutdown()


def _gpu(index: int) -> Gpu:
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    return Gpu(
        index=index,
        uuid=_text(pynvml.nvmlDeviceGetUUID(handle)),
        name=_text(pynvml.nvmlDeviceGetName(handle)),
        memory=int(pynvml.nvmlDeviceGetMemoryInfo(handle).total),
    )


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
