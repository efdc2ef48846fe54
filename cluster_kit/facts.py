"""The facts about the host that a plan needs, as values; `machine` gathers them."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Literal

Driver = Literal["nvidia", "cdi"]
"""How the engine provides GPUs: NVIDIA's runtime hook, or the Container Device Interface."""
CDI_KIND = "nvidia.com/gpu"


def without_kind(gpu: str) -> str:
    """A GPU's index or UUID, without the kind of its CDI name: "0" of "nvidia.com/gpu=0"."""
    return gpu.removeprefix(f"{CDI_KIND}=")


@dataclass(frozen=True)
class Slice:
    """One MIG slice of a GPU, which the engine hands out like a GPU. `memory` in bytes.

    `users` are the processes that compute on it, as messages name them.
    """

    index: int
    uuid: str
    name: str
    memory: int
    users: tuple[str, ...] = ()


@dataclass(frozen=True)
class Gpu:
    """One GPU of the host. `memory` in bytes.

    In MIG mode (`mig`) only its slices can be used; a GPU without slices then cannot. `pci` is its
    bus id, `00000000:3B:00.0`, "" if not known. `users` are as those of a slice.
    """

    index: int
    uuid: str
    name: str
    memory: int
    mig: bool = False
    slices: tuple[Slice, ...] = ()
    pci: str = ""
    users: tuple[str, ...] = ()


@dataclass(frozen=True)
class GpuSetup:
    """The parts of this host's setup that containers need to get GPUs.

    `hardware` is the number of NVIDIA's devices on the PCI bus, `driver` why NVML cannot be used
    ("" if it can), `toolkit` whether the NVIDIA Container Toolkit is installed, `runtime` whether
    the engine has a runtime entry for it, `cdi` whether it reads CDI specifications and `cdi_spec`
    whether there is one for NVIDIA.
    """

    hardware: int = 0
    driver: str = ""
    toolkit: bool = True
    runtime: bool = True
    cdi: bool = False
    cdi_spec: bool = False


@dataclass(frozen=True)
class Network:
    """A subnet in use by a Docker network or a route of the host.

    `cluster` names the cluster-kit cluster that it belongs to, "" if it belongs to none.
    """

    owner: str
    subnet: IPv4Network
    cluster: str = ""


@dataclass(frozen=True)
class EngineKind:
    """An engine's properties besides its version, as the engine reports them.

    `rootless`: it runs as an ordinary user, who is root in its containers. `remote` is its address
    if it is on another machine, "" if it is on this one. `outside`: the kit itself runs in one of
    its containers, and may have other folders. `desktop`: its containers run in a virtual
    machine, to which this host has no route. `unlimited` names the limits that it cannot enforce.
    `machine` is its processors' architecture, "" if not known. `podman`: it is Podman, behind its
    interface for Docker's clients.
    """

    rootless: bool = False
    remote: str = ""
    outside: bool = False
    desktop: bool = False
    unlimited: tuple[str, ...] = ()
    machine: str = ""
    podman: bool = False


@dataclass(frozen=True)
class ArpTable:
    """The kernel's table of the addresses with which containers talk: one for all of a host's.

    Source: arp(7), gc_thresh3: the maximum number of entries.
    """

    entries: int
    limit: int


@dataclass(frozen=True)
class HostFacts:
    """The host as a plan sees it. `cpus` in cores, `memory` in bytes, `user` as `uid:gid`.

    `gpu_driver` is how the engine hands out GPUs; `gpu_refusal` is why it cannot, "" if it can.
    `gpus_taken` are (device id, cluster) of the GPUs that running cluster-kit clusters hold,
    `gpus_reserved` are (device id, container) of those that any other running container has.
    `no_gpu` is why no GPU can be used, "" if there is one. `engine` is the version of the Docker
    engine and `engine_root` the directory of its images, both "" if no engine answers.
    """

    cpus: int
    memory: int
    user: str
    gpus: tuple[Gpu, ...] = ()
    gpu_driver: Driver = "nvidia"
    gpu_refusal: str = ""
    gpus_taken: tuple[tuple[str, str], ...] = ()
    gpus_reserved: tuple[tuple[str, str], ...] = ()
    networks: tuple[Network, ...] = ()
    no_gpu: str = ""
    engine: str = ""
    engine_root: str = ""
    gpu_setup: GpuSetup = GpuSetup()
    kind: EngineKind = EngineKind()
