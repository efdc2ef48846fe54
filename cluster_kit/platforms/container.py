"""What a container is started with, as plain values: the contract with the image. Pure.

A platform needs only a `Cluster` and these values. Texts are as the container sees them: a platform
quotes and escapes them for its file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from ipaddress import IPv4Address, IPv4Network

from cluster_kit import labels
from cluster_kit.contract.times import STOP_GRACE_S
from cluster_kit.facts import Driver
from cluster_kit.plan.tasks import tf_configs
from cluster_kit.platforms.variables import hides, own_variables, shared_variables, without_secrets
from cluster_kit.resolved import (
    OUTPUT,
    OWNER,
    SECRETS,
    TRAINER,
    Bounds,
    Cluster,
    Mount,
    Port,
    Sidecar,
    Task,
    Ulimit,
)
from cluster_kit.roles import ROLES
from cluster_kit.version import __version__

GPU_SHM_BYTES = 2**30
"""Shared memory of a task with GPUs, in bytes: NCCL transfers gradients through it."""
START = ("python3", f"{TRAINER}/own_image/start.py")
"""The entry point of an image that is not the kit's own; it begins a task in the kit's as well."""
ROOT = "0:0"
TMP_MODE = 0o1777
SHAPER_CAPABILITIES = ("NET_ADMIN", "SETUID", "SETGID", "SETPCAP", "KILL")
"""For a task that limits its bandwidth and then becomes the caller's user, without capabilities.

KILL lets the init process, which stays root, forward SIGTERM.
"""
OWNER_CAPABILITIES = tuple(name for name in SHAPER_CAPABILITIES if name != "NET_ADMIN")
"""For a task that becomes the owner of the output directory, without capabilities."""


@dataclass(frozen=True)
class SharedSpec:
    """What all containers of a cluster have in common.

    `labels` are on the cluster's network, too. `output` is the path in the container of the run's
    output directory (`Platform.up` knows the one on the host).
    `image_is_local` means that no registry has the image. `entrypoint` is () for the image's own.
    `tmpfs` maps directories in memory to their modes; `bounds` has the size of each.
    """

    image: str
    image_is_local: bool
    entrypoint: tuple[str, ...]
    environment: Mapping[str, str]
    labels: Mapping[str, str]
    mounts: tuple[Mount, ...]
    output: str
    tmpfs: Mapping[str, int]
    bounds: Bounds
    stop_grace_s: int
    init: bool
    read_only: bool
    no_new_privileges: bool
    cap_drop: tuple[str, ...]


@dataclass(frozen=True)
class Devices:
    """The GPUs that the engine reserves for a task; `ids` are as `driver` names them."""

    driver: Driver
    ids: tuple[str, ...]
    capabilities: tuple[str, ...] = ("gpu",)


@dataclass(frozen=True)
class ContainerSpec:
    """One task's container.

    `restarts` is how often the engine may start it again after a failure. `cpus` (cores),
    `cpu_shares` (weight), `memory` (bytes) and `shm` (bytes) are None for the engine's own
    default. `ports` are published on LOOPBACK.
    """

    shared: SharedSpec
    name: str
    hostname: str
    ip: IPv4Address
    command: tuple[str, ...]
    user: str
    cap_add: tuple[str, ...]
    own_environment: Mapping[str, str]
    """Variables that are added to `shared.environment` or replace some of it."""
    hidden: Mapping[str, str]
    """Further ones: their values are for no file that others may read."""
    env_file: str
    """The host's path of a file with further variables, "" if there is none."""
    secrets: tuple[str, ...]
    """Variables whose values are those of the environment in which the platform is called."""
    labels: Mapping[str, str]
    restarts: int
    cpus: float | None
    mounts: tuple[Mount, ...]
    """In addition to `shared.mounts`."""
    cpu_shares: int | None
    memory: int | None
    shm: int | None
    ulimits: tuple[Ulimit, ...]
    ports: tuple[Port, ...]
    devices: Devices | None

    @property
    def environment(self) -> dict[str, str]:
        """All variables of the container."""
        return {**self.shared.environment, **self.own_environment, **self.hidden}


@dataclass(frozen=True)
class NetworkSpec:
    """The cluster's network, a bridge. `mtu` is None for the engine's own.

    `isolated`: it is internal, and the host has no address in it.
    """

    subnet: IPv4Network
    gateway: IPv4Address
    internal: bool
    isolated: bool
    mtu: int | None
    labels: Mapping[str, str]


def network_spec(cluster: Cluster) -> NetworkSpec:
    """Returns the network that all containers of a cluster are in."""
    return NetworkSpec(
        cluster.subnet,
        cluster.gateway,
        cluster.internal,
        cluster.isolated,
        cluster.mtu,
        _shared(cluster).labels,
    )


def container_specs(cluster: Cluster) -> tuple[ContainerSpec, ...]:
    """Returns the container of every task, in the order of the tasks; there is at least one."""
    shared, configs = _shared(cluster), tf_configs(cluster)
    return tuple(_container(cluster, task, shared, configs[task.name]) for task in cluster.tasks)


def _shared(cluster: Cluster) -> SharedSpec:
    return SharedSpec(
        image=cluster.image,
        image_is_local=cluster.image_is_built,
        entrypoint=START if cluster.mounts_trainer else (),
        environment=shared_variables(cluster),
        labels={labels.CLUSTER: cluster.name, labels.PLAN: plan_hash(cluster)},
        mounts=cluster.mounts,
        output=OUTPUT,
        tmpfs=dict.fromkeys(_in_memory(cluster), TMP_MODE),
        stop_grace_s=STOP_GRACE_S,
        init=True,
        read_only=True,
        no_new_privileges=True,
        cap_drop=("ALL",),
        bounds=cluster.bounds,
    )


def _in_memory(cluster: Cluster) -> tuple[str, ...]:
    writes = any(task.secret_files for task in cluster.tasks)
    return ("/tmp", SECRETS) if writes else ("/tmp",)


def _container(cluster: Cluster, task: Task, shared: SharedSpec, config: str) -> ContainerSpec:
    leads = task is cluster.leader
    variables = own_variables(cluster, task, config, leads=leads)
    hidden = {name: value for name, value in variables.items() if hides(name, value)}
    shaped, adopts = task.bandwidth is not None, cluster.user == OWNER
    return ContainerSpec(
        shared=shared,
        name=f"{cluster.name}-{task.name}",
        hostname=task.name,
        ip=task.ip,
        command=task.command,
        user=ROOT if shaped or adopts else cluster.user,
        cap_add=SHAPER_CAPABILITIES if shaped else OWNER_CAPABILITIES if adopts else (),
        own_environment={k: value for k, value in variables.items() if k not in hidden},
        hidden=hidden,
        env_file=task.env_file,
        secrets=task.from_caller,
        labels=_labels(shared, task, leads=leads),
        restarts=cluster.restarts(task),
        cpus=task.cpus,
        mounts=task.mounts,
        cpu_shares=ROLES[task.role].cpu_shares,
        memory=task.memory,
        shm=task.shm or (GPU_SHM_BYTES if task.gpus else None),
        ulimits=task.ulimits,
        ports=task.ports,
        devices=Devices(cluster.gpu_driver, task.gpus) if task.gpus else None,
    )


def plan_hash(cluster: Cluster) -> str:
    """12 hex digits: a hash of the whole cluster and of the kit's version."""
    text = json.dumps([__version__, without_secrets(cluster)], default=_plain, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _plain(value: object) -> object:
    """A part of a cluster as JSON can have it; `asdict` would copy all of it first."""
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return str(value)


def _labels(shared: SharedSpec, task: Task, *, leads: bool) -> dict[str, str]:
    return {
        labels.CLUSTER: shared.labels[labels.CLUSTER],
        labels.ROLE: task.role,
        labels.INDEX: str(task.index),
        labels.GPUS: ",".join(task.gpus),
        labels.LEADER: str(leads).lower(),
        labels.PLAN: shared.labels[labels.PLAN],
        labels.SECRETS: ",".join(task.from_caller),
    }


@dataclass(frozen=True)
class SidecarSpec:
    """One sidecar's container; the engine never starts it again by itself.

    `image_is_local` means that no registry has the image. `entrypoint` is None for the image's own;
    `command` are its arguments; `user` is "" for the image's own. `ports` are published on
    LOOPBACK.
    """

    image: str
    image_is_local: bool
    name: str
    hostname: str
    ip: IPv4Address
    entrypoint: tuple[str, ...] | None
    command: tuple[str, ...]
    user: str
    init: bool
    environment: Mapping[str, str]
    hidden: Mapping[str, str]
    """Further variables: their values are for no file that others may read."""
    secrets: tuple[str, ...]
    """Variables whose values are those of the environment in which the platform is called."""
    labels: Mapping[str, str]
    mounts: tuple[Mount, ...]
    ports: tuple[Port, ...]
    stop_grace_s: int
    no_new_privileges: bool
    bounds: Bounds
    cap_drop: tuple[str, ...]
    read_only: bool
    tmpfs: Mapping[str, int]
    """These three: as a task's if it has the tasks' image; another image may need what it lacks."""


def sidecar_specs(cluster: Cluster) -> tuple[SidecarSpec, ...]:
    """Returns the container of every sidecar, in their order."""
    return tuple(_sidecar(cluster, one) for one in cluster.sidecars)


def _sidecar(cluster: Cluster, one: Sidecar) -> SidecarSpec:
    of_tasks, variables = one.image == cluster.image, dict(one.environment)
    hidden = {name: value for name, value in variables.items() if hides(name, value)}
    return SidecarSpec(
        image=one.image,
        image_is_local=of_tasks and cluster.image_is_built,
        name=f"{cluster.name}-{one.name}",
        hostname=one.name,
        ip=one.ip,
        entrypoint=one.entrypoint,
        command=one.command,
        user=one.user,
        init=of_tasks,  # the init process of another image may have to be the first itself
        environment={name: value for name, value in variables.items() if name not in hidden},
        hidden=hidden,
        secrets=one.secrets,
        labels={
            labels.CLUSTER: cluster.name,
            labels.SIDECAR: one.name,
            labels.PLAN: plan_hash(cluster),
            labels.SECRETS: ",".join(one.secrets),
        },
        mounts=one.mounts,
        ports=one.ports,
        stop_grace_s=STOP_GRACE_S,
        no_new_privileges=True,
        bounds=cluster.bounds,
        cap_drop=("ALL",) if of_tasks else (),
        read_only=of_tasks,
        tmpfs={"/tmp": TMP_MODE} if of_tasks else {},
    )
