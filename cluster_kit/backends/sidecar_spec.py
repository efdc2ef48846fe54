"""What a sidecar's container is started with, as plain values. Pure.

As in `container_spec`, texts are as the container sees them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address

from cluster_kit import labels
from cluster_kit.backends.container_spec import STOP_GRACE_S, TMP_MODE, plan_hash
from cluster_kit.backends.hidden import hides
from cluster_kit.cluster import Cluster
from cluster_kit.parts import Bounds, Mount, Port, Sidecar


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
    """Variables whose values are those of the environment in which the backend is called."""
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
    return tuple(_container(cluster, one) for one in cluster.sidecars)


def _container(cluster: Cluster, one: Sidecar) -> SidecarSpec:
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
