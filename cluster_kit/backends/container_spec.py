"""Everything that a task's container is given, as plain values: the contract with the image. Pure.

A backend needs a `Cluster` and these values, nothing else; Compose is the first. Texts are as the
container sees them: quoting and escaping are the backend's.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from ipaddress import IPv4Address

from cluster_kit import __version__, labels
from cluster_kit.backends.variables import own_variables, shared_variables
from cluster_kit.cluster import OUTPUT, Cluster, Mount, Task
from cluster_kit.facts import Driver
from cluster_kit.plan.tf_config import tf_configs
from cluster_kit.roles import ROLES

STOP_GRACE_S = 10
"""Seconds from SIGTERM to SIGKILL; a program that saves has 8 of them."""
GPU_SHM_BYTES = 2**30
"""Shared memory of a task with GPUs: NCCL moves gradients through it."""
ROOT = "0:0"
SHAPER_CAPABILITIES = ("NET_ADMIN", "SETUID", "SETGID", "SETPCAP", "KILL")
"""To shape its own interface, and then to become the caller's user for good, with no capability
left. KILL lets the init process, which stays root, hand on SIGTERM."""


@dataclass(frozen=True)
class SharedSpec:
    """What all containers of a cluster are given alike.

    `labels` mark everything that is the cluster's, its network too. `mounts` are read-only;
    `output` is where each container has the run's directory, which all of them write to: only who
    starts them knows the host's side of it. `image_is_local` says that no registry has the image.
    `tmpfs` maps directories in memory to their modes.
    """

    image: str
    image_is_local: bool
    environment: Mapping[str, str]
    labels: Mapping[str, str]
    mounts: tuple[Mount, ...]
    output: str
    tmpfs: Mapping[str, int]
    stop_grace_s: int
    init: bool
    read_only: bool
    no_new_privileges: bool
    cap_drop: tuple[str, ...]


@dataclass(frozen=True)
class Devices:
    """GPUs that the engine reserves: `ids` as `driver` calls them."""

    driver: Driver
    ids: tuple[str, ...]
    capabilities: tuple[str, ...] = ("gpu",)


@dataclass(frozen=True)
class ContainerSpec:
    """One task's container.

    `restarts` is how often the engine starts it again after a failure, 0 for never. `cpus` (cores),
    `cpu_shares` (weight), `memory` (bytes) and `shm` (bytes, whole GiB) are None for the engine's
    own default.
    """

    shared: SharedSpec
    name: str
    hostname: str
    ip: IPv4Address
    command: tuple[str, ...]
    user: str
    cap_add: tuple[str, ...]
    own_environment: Mapping[str, str]
    """Its variables beyond `shared.environment`, or in their place."""
    labels: Mapping[str, str]
    restarts: int
    cpus: float | None
    cpu_shares: int | None
    memory: int | None
    shm: int | None
    devices: Devices | None

    @property
    def environment(self) -> dict[str, str]:
        """All its variables."""
        return {**self.shared.environment, **self.own_environment}


def container_specs(cluster: Cluster) -> tuple[ContainerSpec, ...]:
    """Returns every task's container, in the order of the tasks; a cluster has at least one."""
    shared, configs = _shared(cluster), tf_configs(cluster)
    return tuple(_container(cluster, task, shared, configs[task.name]) for task in cluster.tasks)


def _shared(cluster: Cluster) -> SharedSpec:
    return SharedSpec(
        image=cluster.image,
        image_is_local=cluster.variant is not None,
        environment=shared_variables(cluster),
        labels={labels.CLUSTER: cluster.name, labels.PLAN: plan_hash(cluster)},
        mounts=cluster.mounts,
        output=OUTPUT,
        tmpfs={"/tmp": 0o1777},
        stop_grace_s=STOP_GRACE_S,
        init=True,
        read_only=True,
        no_new_privileges=True,
        cap_drop=("ALL",),
    )


def _container(cluster: Cluster, task: Task, shared: SharedSpec, config: str) -> ContainerSpec:
    leads = task is cluster.leader
    shaped = task.bandwidth is not None
    return ContainerSpec(
        shared=shared,
        name=f"{cluster.name}-{task.name}",
        hostname=task.name,
        ip=task.ip,
        command=task.command,
        user=ROOT if shaped else cluster.user,
        cap_add=SHAPER_CAPABILITIES if shaped else (),
        own_environment=own_variables(cluster, task, config, leads=leads),
        labels=_labels(shared, task, leads=leads),
        restarts=cluster.restarts(task),
        cpus=task.cpus,
        cpu_shares=ROLES[task.role].cpu_shares,
        memory=task.memory,
        shm=GPU_SHM_BYTES if task.gpus else None,
        devices=Devices(cluster.gpu_driver, task.gpus) if task.gpus else None,
    )


def plan_hash(cluster: Cluster) -> str:
    """12 hex digits over everything the cluster says and the version of the kit that says it."""
    text = json.dumps([__version__, asdict(cluster)], default=str, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _labels(shared: SharedSpec, task: Task, *, leads: bool) -> dict[str, str]:
    return {
        labels.CLUSTER: shared.labels[labels.CLUSTER],
        labels.ROLE: task.role,
        labels.INDEX: str(task.index),
        labels.GPUS: ",".join(task.gpus),
        labels.LEADER: str(leads).lower(),
        labels.PLAN: shared.labels[labels.PLAN],
    }
