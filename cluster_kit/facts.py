"""What a plan needs to know about the host, as one value; `host` gathers it."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network


@dataclass(frozen=True)
class Gpu:
    """One GPU of the host. `memory` in bytes."""

    index: int
    uuid: str
    name: str
    memory: int


@dataclass(frozen=True)
class Network:
    """A subnet in use: by a Docker network, or by a route of the host.

    `cluster` names the cluster-kit cluster it belongs to, "" for anybody else's.
    """

    owner: str
    subnet: IPv4Network
    cluster: str = ""


@dataclass(frozen=True)
class HostFacts:
    """The host as a plan sees it. `memory` in bytes, `user` as `uid:gid`.

    `gpu_refusal` is why the engine cannot hand out the GPUs that are there, "" where it can.
    """

    cpus: int
    memory: int
    user: str
    gpus: tuple[Gpu, ...] = ()
    gpu_refusal: str = ""
    networks: tuple[Network, ...] = ()
