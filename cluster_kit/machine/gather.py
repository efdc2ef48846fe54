"""Gathers `HostFacts` from the engine, the routing table and NVIDIA's driver."""

from __future__ import annotations

import os
from dataclasses import replace
from ipaddress import IPv4Network
from pathlib import Path

from cluster_kit.facts import Driver, EngineKind, Gpu, HostFacts, Network
from cluster_kit.host import Host
from cluster_kit.machine.gpu_setup import gpu_setup
from cluster_kit.plan.gpus.request import devices
from cluster_kit.platforms.docker.docker_address import address, caller, engine_kind
from cluster_kit.platforms.engine import Engine

ROUTES = Path("/proc/net/route")
WIDEST_ROUTE = 8


def gather(host: Host, engine: Engine | None) -> HostFacts:
    """The facts of this host; without an engine, only those that the operating system knows.

    Raises:
        EngineError: the engine stopped answering.
    """
    inventory = host.gpus()
    there = bool(devices(inventory))
    no_driver = "" if there else host.no_driver()
    no_gpu = "" if there else no_driver or "the driver shows none"
    if engine is None:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        networks = tuple(host.routes())
        cpus = os.cpu_count() or 1
        user = caller(EngineKind())
        return HostFacts(cpus, memory, user, inventory, networks=networks, no_gpu=no_gpu)
    info = engine.info()
    kind = engine_kind(info, address())
    driver, refusal = _gpu_driver(engine, inventory, cdi=bool(info.get("CDISpecDirs")))
    return HostFacts(
        cpus=info["NCPU"],
        memory=info["MemTotal"],
        user=caller(kind),
        gpus=inventory,
        gpu_driver=driver,
        gpu_refusal=refusal,
        gpus_taken=engine.gpus_taken() if inventory else (),
        gpus_reserved=engine.gpus_reserved() if inventory else (),
        networks=gather_networks(host, engine),
        no_gpu=no_gpu,
        engine=str(info.get("ServerVersion", "")),
        engine_root=str(info.get("DockerRootDir", "")),
        gpu_setup=gpu_setup(info, no_driver),
        kind=kind,
    )


def gather_networks(host: Host, engine: Engine) -> tuple[Network, ...]:
    """Every subnet in use: by the engine's networks, and by routes of this host.

    A running cluster is listed twice: as a Docker network and as its bridge's route.

    Raises:
        EngineError: the engine stopped answering.
    """
    docker_networks = [
        Network(f"Docker network {name}", IPv4Network(cidr, strict=False), cluster)
        for name, cluster, cidr in engine.networks()
    ]
    clusters = {
        str(network.subnet): network.cluster for network in docker_networks if network.cluster
    }
    routes = [
        replace(route, cluster=clusters.get(str(route.subnet), "")) for route in host.routes()
    ]
    return tuple(docker_networks + routes)


def routes_of(table: Path) -> list[Network]:
    """IPv4 routes of this host, without the default route; [] if there is no /proc.

    A VPN may write the default route as two halves, 0.0.0.0/1 and 128.0.0.0/1: any route wider
    than a /8 counts as default.

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


def _gpu_driver(engine: Engine, inventory: tuple[Gpu, ...], *, cdi: bool) -> tuple[Driver, str]:
    """How the engine hands out GPUs, and why it cannot ("" if it can), found by trying.

    NVIDIA's own runtime is tried first, then the Container Device Interface if the engine has it.
    """
    present = devices(inventory)
    if not present:
        return "nvidia", ""
    refusal = engine.gpu_refusal("nvidia", present[0].engine_id("nvidia"))
    if refusal and cdi:
        cdi_refusal = engine.gpu_refusal("cdi", present[0].engine_id("cdi"))
        if not cdi_refusal:
            return "cdi", ""
        refusal = f"{refusal}; by CDI: {cdi_refusal}"
    return "nvidia", refusal
