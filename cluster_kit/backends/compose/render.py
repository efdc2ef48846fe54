"""Renders a cluster's compose file. Pure."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from cluster_kit import __version__, labels
from cluster_kit.backends.compose.yaml import Pair, comment, flow, pairs, quote
from cluster_kit.backends.container_spec import (
    ContainerSpec,
    SharedSpec,
    container_specs,
)
from cluster_kit.cluster import Cluster, Mount
from cluster_kit.util import templating


@dataclass(frozen=True)
class Shared:
    """The values that all services share, as YAML text."""

    image: str
    pull_policy: str
    user: str
    init: str
    read_only: str
    cap_drop: str
    security_opt: str
    tmpfs: str
    stop_grace: str
    output: str
    mounts: tuple[Mount, ...]
    environment: tuple[Pair, ...]


@dataclass(frozen=True)
class Service:
    """One service's values as YAML text; "" for a key that it does not have."""

    name: str
    container: str
    command: str
    user: str
    capabilities: str
    restart: str
    cpu_shares: str
    ip: str
    environment: tuple[Pair, ...]
    shm: str
    limits: tuple[Pair, ...]
    driver: str
    device_ids: str
    device_capabilities: str
    labels: tuple[Pair, ...]


def render(cluster: Cluster) -> str:
    """Returns the compose file's text. Same cluster, same bytes."""
    containers = container_specs(cluster)
    shared = containers[0].shared
    return templating.kit_template("compose.yaml.j2").render(
        header={
            "generator": f"cluster-kit {__version__}",
            "source": comment(cluster.source),
            "command": comment(f"cluster-kit render {shlex.quote(Path(cluster.source).stem)}"),
            "hash": shared.labels[labels.PLAN],
        },
        project=cluster.project,
        task=_shared(cluster, shared),
        services=[_service(cluster, container) for container in containers],
        subnet=str(cluster.subnet),
        gateway=str(cluster.gateway),
        network_labels=pairs(shared.labels),
        run_label=labels.RUN,
    )


def _shared(cluster: Cluster, spec: SharedSpec) -> Shared:
    return Shared(
        image=quote(spec.image),
        pull_policy="never" if spec.image_is_local else "missing",
        user=quote(cluster.user),
        init=_boolean(spec.init),
        read_only=_boolean(spec.read_only),
        cap_drop="[" + ", ".join(spec.cap_drop) + "]",
        security_opt=f'["no-new-privileges:{_boolean(spec.no_new_privileges)}"]',
        tmpfs="[" + ", ".join(f'"{path}:mode={mode:o}"' for path, mode in spec.tmpfs.items()) + "]",
        stop_grace=f"{spec.stop_grace_s}s",
        output=spec.output,
        mounts=tuple(Mount(quote(mount.source), quote(mount.target)) for mount in spec.mounts),
        environment=pairs(spec.environment),
    )


def _service(cluster: Cluster, spec: ContainerSpec) -> Service:
    devices = spec.devices
    return Service(
        name=spec.hostname,
        container=spec.name,
        command=flow(spec.command),
        user="" if spec.user == cluster.user else quote(spec.user),
        capabilities=flow(spec.cap_add) if spec.cap_add else "",
        restart=f"on-failure:{spec.restarts}" if spec.restarts else '"no"',
        cpu_shares="" if spec.cpu_shares is None else str(spec.cpu_shares),
        ip=str(spec.ip),
        environment=pairs(spec.own_environment),
        shm="" if spec.shm is None else f"{spec.shm // 2**30}gb",
        limits=_limits(spec),
        driver=devices.driver if devices else "",
        device_ids=flow(devices.ids) if devices else "",
        device_capabilities="[" + ", ".join(devices.capabilities) + "]" if devices else "",
        labels=tuple(
            Pair(key, text if key == labels.ROLE else quote(text))
            for key, text in spec.labels.items()
        ),
    )


def _limits(spec: ContainerSpec) -> tuple[Pair, ...]:
    limits = {}
    if spec.cpus is not None:
        limits["cpus"] = f"{spec.cpus:.15g}"
    if spec.memory is not None:
        limits["memory"] = f"{spec.memory}b"
    return pairs(limits)


def _boolean(value: bool) -> str:
    return "true" if value else "false"
