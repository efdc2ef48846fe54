"""The settings with which a container is started, as plain values: the contract with the image.
Pure.

A platform needs only a `Cluster` and these values. Texts are as the container sees them: a platform
quotes and escapes them for its file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from ipaddress import IPv4Address, IPv4Network
from typing import Any

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
"""The entry point for a user's image; it also starts tasks in the kit's image."""
START_COPIED = ("python3", "-P", "-m", "trainer")
"""The entry point for a user's image made from the kit's, where nothing can be mounted; it may have
replaced the kit's own."""
ROOT = "0:0"
TMP_MODE = 0o1777
SHAPER_CAPABILITIES = ("NET_ADMIN", "SETUID", "SETGID", "SETPCAP", "KILL")
"""Capabilities of a task that limits its bandwidth and then becomes the caller's user, without any.

KILL lets the init process, which stays root, forward SIGTERM.
"""
OWNER_CAPABILITIES = tuple(name for name in SHAPER_CAPABILITIES if name != "NET_ADMIN")
"""Capabilities of a task that first switches to the owner of the output directory; it then has
none."""


@dataclass(frozen=True)
class Devices:
    """The GPUs that the engine reserves for a task; `ids` are as `driver` names them."""

    driver: Driver
    ids: tuple[str, ...]
    capabilities: tuple[str, ...] = ("gpu",)


@dataclass(frozen=True)
class Container:
    """The settings of a task's or a sidecar's container; each platform writes them into its own
    file format.

    `image_is_local` means that no registry has the image. `entrypoint` is None for the image's own,
    `command` has its arguments, and `user` is "" for the image's own. `restarts` is how often the
    engine may start it again after a failure. `cpus` (cores), `cpu_shares` (weight), `memory`
    (bytes) and `shm_size` (bytes) are None for the engine's own default. `ports` are published on
    LOOPBACK.
    """

    name: str
    hostname: str
    ip: IPv4Address | None
    image: str
    image_is_local: bool
    entrypoint: tuple[str, ...] | None
    command: tuple[str, ...]
    user: str
    environment: Mapping[str, str]
    """Its variables by name, without those in `hidden`."""
    hidden: Mapping[str, str]
    """Further variables, whose values must not be in a file that others can read."""
    secrets: tuple[str, ...]
    """Variables whose values come from the environment of the command that starts the platform."""
    env_file: str
    """The host's path of a file with further variables, "" if there is none."""
    labels: Mapping[str, str]
    mounts: tuple[Mount, ...]
    output: str
    """The container's path of the run's output directory, "" if it has none."""
    tmpfs: Mapping[str, int]
    """Directories in memory, with their modes; `bounds` has the size of each."""
    bounds: Bounds
    ports: tuple[Port, ...]
    restarts: int
    stop_grace_s: int
    init: bool
    read_only: bool
    no_new_privileges: bool
    cap_drop: tuple[str, ...]
    cap_add: tuple[str, ...] = ()
    cpus: float | None = None
    cpu_shares: int | None = None
    memory: int | None = None
    shm_size: int | None = None
    ulimits: tuple[Ulimit, ...] = ()
    devices: Devices | None = None
    is_ready: tuple[str, ...] = ()
    """A command in it that ends with 0 when it is ready; () if there is none."""

    @property
    def variables(self) -> dict[str, str]:
        """All variables whose values are known here."""
        return {**self.environment, **self.hidden}

    def besides(self, shared: Mapping[str, str]) -> dict[str, str]:
        """The variables of `environment` that `shared` lacks or has with another value."""
        return {k: value for k, value in self.environment.items() if shared.get(k) != value}


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
        cluster_labels(cluster),
    )


def cluster_labels(cluster: Cluster) -> dict[str, str]:
    """Returns the labels of all that belongs to a cluster: containers, networks, other objects."""
    return {labels.CLUSTER: cluster.name, labels.PLAN: plan_hash(cluster)}


def _entrypoint(cluster: Cluster) -> tuple[str, ...] | None:
    """Returns the entry point of tasks; None in the kit's image, which has it."""
    if cluster.variant is not None:
        return None
    return START if cluster.mounts_trainer else START_COPIED


def every_task(cluster: Cluster) -> Container:
    """Returns what the containers of all tasks have in common.

    It has no name, address and command. A platform may write it once for all tasks.
    """
    return Container(
        name="",
        hostname="",
        ip=None,
        image=cluster.image,
        image_is_local=cluster.image_is_built,
        entrypoint=_entrypoint(cluster),
        command=(),
        user=ROOT if cluster.user == OWNER else cluster.user,
        environment=shared_variables(cluster),
        hidden={},
        secrets=(),
        env_file="",
        labels=cluster_labels(cluster),
        mounts=cluster.mounts,
        output=OUTPUT,
        tmpfs=dict.fromkeys(_in_memory(cluster), TMP_MODE),
        bounds=cluster.bounds,
        ports=(),
        restarts=0,
        stop_grace_s=STOP_GRACE_S,
        init=True,
        read_only=True,
        no_new_privileges=True,
        cap_drop=("ALL",),
        cap_add=OWNER_CAPABILITIES if cluster.user == OWNER else (),
    )


def task_containers(cluster: Cluster) -> tuple[Container, ...]:
    """Returns the container of every task, in the order of the tasks; there is at least one."""
    common, configs = every_task(cluster), tf_configs(cluster)
    return tuple(_container(cluster, task, common, configs[task.name]) for task in cluster.tasks)


def _in_memory(cluster: Cluster) -> tuple[str, ...]:
    writes = any(task.secret_files for task in cluster.tasks)
    return ("/tmp", SECRETS) if writes else ("/tmp",)


def _container(cluster: Cluster, task: Task, common: Container, config: str) -> Container:
    leads = task is cluster.leader
    variables = own_variables(cluster, task, config, leads=leads)
    hidden = {name: value for name, value in variables.items() if hides(name, value)}
    in_clear = {name: value for name, value in variables.items() if name not in hidden}
    shaped = task.bandwidth is not None
    return replace(
        common,
        name=f"{cluster.name}-{task.name}",
        hostname=task.name,
        ip=task.ip,
        command=task.command,
        user=ROOT if shaped else common.user,
        cap_add=SHAPER_CAPABILITIES if shaped else common.cap_add,
        environment=dict(sorted({**common.environment, **in_clear}.items())),
        hidden=hidden,
        env_file=task.env_file,
        secrets=task.from_caller,
        labels=_labels(common.labels, task, leads=leads),
        restarts=cluster.restarts(task),
        cpus=task.cpus,
        mounts=(*common.mounts, *task.mounts),
        cpu_shares=ROLES[task.role].cpu_shares,
        memory=task.memory,
        shm_size=task.shm_size or (GPU_SHM_BYTES if task.gpus else None),
        ulimits=task.ulimits,
        ports=task.ports,
        devices=Devices(cluster.gpu_driver, task.gpus) if task.gpus else None,
    )


def plan_hash(cluster: Cluster) -> str:
    """A hash of 12 hex digits of the whole cluster and of the kit's version.

    A field with its default is left out, so that a new field does not change the hash of clusters
    without it.
    """
    text = json.dumps([__version__, without_secrets(cluster)], default=_plain, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _plain(value: object) -> object:
    """A part of a cluster as plain values for JSON, without the copy that `asdict` would make."""
    if is_dataclass(value):
        values = ((field, getattr(value, field.name)) for field in fields(value))
        return {field.name: of_field for field, of_field in values if of_field != _default(field)}
    return str(value)


def _default(field: Field[Any]) -> object:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _labels(shared: Mapping[str, str], task: Task, *, leads: bool) -> dict[str, str]:
    return {
        labels.CLUSTER: shared[labels.CLUSTER],
        labels.ROLE: task.role,
        labels.INDEX: str(task.index),
        labels.GPUS: ",".join(task.gpus),
        labels.LEADER: str(leads).lower(),
        labels.PLAN: shared[labels.PLAN],
        labels.SECRETS: ",".join(task.from_caller),
    }


def sidecar_containers(cluster: Cluster) -> tuple[Container, ...]:
    """Returns the container of every sidecar, in their order; the engine never restarts one."""
    return tuple(_sidecar(cluster, sidecar) for sidecar in cluster.sidecars)


def _sidecar(cluster: Cluster, sidecar: Sidecar) -> Container:
    of_tasks, variables = sidecar.image == cluster.image, dict(sidecar.environment)
    hidden = {name: value for name, value in variables.items() if hides(name, value)}
    return Container(
        name=f"{cluster.name}-{sidecar.name}",
        hostname=sidecar.name,
        ip=sidecar.ip,
        image=sidecar.image,
        image_is_local=of_tasks and cluster.image_is_built,
        entrypoint=sidecar.entrypoint,
        command=sidecar.command,
        user=sidecar.user,
        environment={name: value for name, value in variables.items() if name not in hidden},
        hidden=hidden,
        secrets=sidecar.secrets,
        env_file="",
        labels={
            labels.CLUSTER: cluster.name,
            labels.SIDECAR: sidecar.name,
            labels.PLAN: plan_hash(cluster),
            labels.SECRETS: ",".join(sidecar.secrets),
        },
        mounts=sidecar.mounts,
        output="",
        bounds=cluster.bounds,
        ports=sidecar.ports,
        restarts=0,
        stop_grace_s=STOP_GRACE_S,
        no_new_privileges=True,
        # A different image may need the rights that these options remove, or has its own init.
        init=of_tasks,
        read_only=of_tasks,
        cap_drop=("ALL",) if of_tasks else (),
        tmpfs={"/tmp": TMP_MODE} if of_tasks else {},
        is_ready=sidecar.ready.command if sidecar.ready else (),
    )
