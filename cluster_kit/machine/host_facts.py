"""The facts of this host that planning needs: CPUs, memory, networks, GPUs."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import pynvml

from cluster_kit.facts import ArpTable, Driver, EngineKind, Gpu, GpuSetup, HostFacts, Network, Slice
from cluster_kit.host import Host
from cluster_kit.plan.gpus import devices
from cluster_kit.platforms.docker.docker_connection import address, caller, engine_kind
from cluster_kit.platforms.engine import Engine, Inventory

PCI_DEVICES = Path("/sys/bus/pci/devices")
NVIDIA = "0x10de"
DISPLAY = "0x03"
"""The PCI class of display controllers. Source: PCI ID list, classes 0300 and 0302."""
TOOLS = ("nvidia-ctk", "nvidia-container-runtime-hook", "nvidia-container-runtime")


def gpu_setup(info: Mapping[str, Any], driver: str = "") -> GpuSetup:
    """The GPU setup of this host, and of the engine whose `docker info` is `info`.

    Args:
        driver: why NVML cannot be used, "" if it can.
    """
    folders = info.get("CDISpecDirs") or ()
    return GpuSetup(
        hardware=_hardware(PCI_DEVICES),
        driver=driver,
        toolkit=any(shutil.which(tool) for tool in TOOLS),
        runtime="nvidia" in (info.get("Runtimes") or {}),
        cdi=bool(folders),
        cdi_spec=_has_spec(folders),
    )


def _hardware(devices: Path) -> int:
    """The number of NVIDIA's display controllers; 0 if there is no sysfs."""
    if not devices.is_dir():
        return 0
    return sum(
        _read(device / "vendor") == NVIDIA and _read(device / "class").startswith(DISPLAY)
        for device in devices.iterdir()
    )


def _read(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""


def _has_spec(folders: Iterable[str]) -> bool:
    """Whether a CDI specification for NVIDIA's GPUs lies in one of the folders."""
    return any(
        "nvidia.com/gpu" in _read(file)
        for folder in folders
        for pattern in ("*.json", "*.yaml")
        for file in sorted(Path(folder).glob(pattern))
    )


ROUTES = Path("/proc/net/route")
MOUNTS = Path("/proc/self/mountinfo")
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
    kind = engine_kind(info, address(), _read(MOUNTS))
    hands_out = engine if inventory and isinstance(engine, Inventory) else None
    cdi = bool(info.get("CDISpecDirs"))
    driver, refusal = _gpu_driver(hands_out, inventory, cdi=cdi) if hands_out else ("nvidia", "")
    return HostFacts(
        cpus=info["NCPU"],
        memory=info["MemTotal"],
        user=caller(kind),
        gpus=inventory,
        gpu_driver=driver,
        gpu_refusal=refusal,
        gpus_taken=hands_out.gpus_taken() if hands_out else (),
        gpus_reserved=hands_out.gpus_reserved() if hands_out else (),
        networks=gather_networks(host, engine),
        no_gpu=no_gpu,
        engine=str(info.get("ServerVersion", "")),
        engine_root=str(info.get("DockerRootDir", "")),
        gpu_setup=gpu_setup(info, no_driver),
        kind=kind,
    )


def arp_table(host: Host, kind: EngineKind) -> ArpTable | None:
    """The ARP table of the kernel that runs this engine's containers; None if it is another host's,
    or does not say."""
    return None if kind.remote or kind.desktop else host.arp_table()


def gather_networks(host: Host, engine: Engine) -> tuple[Network, ...]:
    """Every subnet in use: by the engine's networks, and by routes of this host.

    A running cluster is listed twice: as a Docker network and as its bridge's route.

    Raises:
        EngineError: the engine stopped answering.
    """
    docker_networks = [
        Network(f"Docker network {name}", IPv4Network(cidr, strict=False), cluster)
        for name, cluster, cidr in (engine.networks() if isinstance(engine, Inventory) else ())
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


def _gpu_driver(engine: Inventory, inventory: tuple[Gpu, ...], *, cdi: bool) -> tuple[Driver, str]:
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


def gpu_inventory() -> tuple[Gpu, ...]:
    """GPUs by index, with their MIG slices; () if there is no driver.

    A GPU that does not respond, fallen off the bus for example, is left out.
    """
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return ()
    try:
        return tuple(_responding(range(pynvml.nvmlDeviceGetCount())))
    finally:
        pynvml.nvmlShutdown()


def driver_problem() -> str:
    """Why NVML cannot be used: no driver, or one that does not respond; "" if it can."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return str(error)
    pynvml.nvmlShutdown()
    return ""


def _responding(indexes: Iterable[int]) -> Iterator[Gpu]:
    for index in indexes:
        with contextlib.suppress(pynvml.NVMLError):
            yield _gpu(index)


def _gpu(index: int) -> Gpu:
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    return Gpu(
        index=index,
        uuid=_text(pynvml.nvmlDeviceGetUUID(handle)),
        name=_text(pynvml.nvmlDeviceGetName(handle)),
        memory=int(pynvml.nvmlDeviceGetMemoryInfo(handle).total),
        mig=_in_mig_mode(handle),
        slices=tuple(_slices(handle)),
        pci=_pci(handle),
        users=_users(handle),
    )


def _users(handle: Any) -> tuple[str, ...]:
    """The processes that compute on a GPU or slice, without those that only draw on it."""
    try:
        processes = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
    except pynvml.NVMLError:
        return ()
    return tuple(map(_process, sorted(processes, key=lambda process: int(process.pid))))


def _process(process: Any) -> str:
    """`process 123 (python3), 10.2 GiB`; an unknown name or size is left out."""
    name, size = "", ""
    with contextlib.suppress(pynvml.NVMLError, UnicodeDecodeError):
        program = _text(pynvml.nvmlSystemGetProcessName(process.pid)).split(maxsplit=1)
        name = f" ({program[0].rpartition('/')[2]})" if program else ""
    if process.usedGpuMemory:
        size = f", {process.usedGpuMemory / 2**30:.1f} GiB"
    return f"process {process.pid}{name}{size}"


def _pci(handle: Any) -> str:
    try:
        return _text(pynvml.nvmlDeviceGetPciInfo(handle).busId)
    except pynvml.NVMLError:
        return ""


def _in_mig_mode(handle: Any) -> bool:
    try:
        mode, _pending = pynvml.nvmlDeviceGetMigMode(handle)
    except pynvml.NVMLError:
        return False
    return bool(mode)


def _slices(handle: Any) -> Iterator[Slice]:
    """The MIG devices of a GPU in MIG mode. Their indexes may have holes."""
    if not _in_mig_mode(handle):
        return
    for index in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        try:
            part = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
        except pynvml.NVMLError:
            continue
        yield Slice(
            index=index,
            uuid=_text(pynvml.nvmlDeviceGetUUID(part)),
            name=_text(pynvml.nvmlDeviceGetName(part)).split("MIG")[-1].strip() or f"slice {index}",
            memory=int(pynvml.nvmlDeviceGetMemoryInfo(part).total),
            users=_users(part),
        )


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
