"""Gathers `HostFacts`: from the engine, the routing table and NVIDIA's driver."""

from __future__ import annotations

import os
from ipaddress import IPv4Network
from pathlib import Path

from cluster_kit.engine.client import Engine
from cluster_kit.facts import Driver, Gpu, HostFacts, Network
from cluster_kit.host.nvidia import gpu_inventory
from cluster_kit.plan.gpus.devices import devices

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
    driver, refusal = hand_out(engine, inventory)
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
        gpu_driver=driver,
        gpu_refusal=refusal,
        gpus_taken=engine.gpus_taken() if inventory else (),
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


def hand_out(engine: Engine, inventory: tuple[Gpu, ...]) -> tuple[Driver, str]:
    """How the engine hands out GPUs, and why it cannot ("" where it can), found by trying.

    NVIDIA's own runtime first, then the Container Device Interface where the engine reads it.
    """
    there = devices(inventory)
    if not there:
        return "nvidia", ""
    refusal = engine.gpu_refusal("nvidia", there[0].engine_id("nvidia"))
    if refusal and engine.info().get("CDISpecDirs"):
        cdi_refusal = engine.gpu_refusal("cdi", there[0].engine_id("cdi"))
        if not cdi_refusal:
            return "cdi", ""
        refusal = f"{refusal}; by CDI: {cdi_refusal}"
    return "nvidia", refusal
