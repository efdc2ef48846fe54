"""Renders a cluster's stack file, for `docker stack deploy`. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cluster_kit import labels
from cluster_kit.platforms import rendered_file
from cluster_kit.platforms.container import (
    ContainerSpec,
    NetworkSpec,
    SharedSpec,
    container_specs,
    network_spec,
)
from cluster_kit.platforms.rendered_file import (
    FileSecret,
    file_secrets,
    header,
    is_secret,
    limits,
    logging,
    ulimits,
)
from cluster_kit.platforms.variables import BEACON_SECRET, GROWING, SHARED
from cluster_kit.platforms.yaml import Anchored, OneLine, Verbatim, block, present
from cluster_kit.resolved import Cluster, Mount, Task
from cluster_kit.util import templating

GPU_KIND = "GPU"
"""The kind of generic resource that nodes announce GPUs as, and NVIDIA's runtime reads."""
MTU = "com.docker.network.driver.mtu"
RUN_ID = Verbatim("${CLUSTER_KIT_RUN:-}")
MERGE = Verbatim("<<")
Data = dict[str, Any]


def render(cluster: Cluster) -> str:
    """Returns the stack file: the same cluster gives the same text."""
    containers = container_specs(cluster)
    shared = containers[0].shared
    services = zip(cluster.tasks, containers, strict=True)
    own = file_secrets(cluster)
    return templating.kit_template("stack.yaml.j2", yaml=block).render(
        header=header(cluster, shared.labels[labels.PLAN], own_lines(cluster)),
        task=_shared(cluster, shared),
        environment=_environment(shared),
        services=[{spec.hostname: _service(cluster, task, spec)} for task, spec in services],
        network=_network(cluster, network_spec(cluster)),
        config=_config(cluster, shared),
        secrets={one.name: {"file": one.file, "labels": shared.labels} for one in own},
    )


def own_lines(cluster: Cluster) -> list[str]:
    """What the file says of itself in its first lines."""
    mounted = "output/, and all that is mounted, must be there at the same path on every node."
    return [
        f"`docker stack deploy --resolve-image never -c stack.yaml {cluster.project}` starts it on",
        "a swarm's manager. Every node needs its image: `docker save … | ssh NODE docker load`.",
        mounted,
        f"It does not end by itself: `docker stack rm {cluster.project}`.",
    ]


def _shared(cluster: Cluster, spec: SharedSpec) -> Data:
    """What all services share."""
    return present(
        {
            "image": spec.image,
            "entrypoint": spec.entrypoint,
            "init": spec.init,
            "user": cluster.user,
            "read_only": spec.read_only,
            "cap_drop": [Verbatim(word) for word in spec.cap_drop],
            "logging": logging(spec.bounds),
            "stop_grace_period": Verbatim(f"{spec.stop_grace_s}s"),
            "networks": [Verbatim("cluster")],
            "configs": [{"source": Verbatim("cluster"), "target": Verbatim(rendered_file.TARGET)}],
            "volumes": _volumes(spec, spec.mounts),
        }
    )


def _environment(spec: SharedSpec) -> Data:
    """The variables of all services: what grows with the cluster is in a file."""
    own = {name: value for name, value in spec.environment.items() if name not in GROWING}
    own[SHARED] = rendered_file.TARGET
    return dict(sorted(own.items())) | {BEACON_SECRET: Verbatim(f"${{{BEACON_SECRET}:-}}")}


def _service(cluster: Cluster, task: Task, spec: ContainerSpec) -> Data:
    """What one task has besides."""
    mounts = (*spec.shared.mounts, *spec.mounts)
    has_own = spec.shm is not None or any(not is_secret(mount) for mount in spec.mounts)
    return present(
        {
            MERGE: Verbatim("*task"),
            "hostname": Verbatim(spec.hostname),
            "command": spec.command,
            "user": None if spec.user == cluster.user else spec.user,
            "cap_add": spec.cap_add,
            "volumes": _volumes(spec.shared, mounts, spec.shm) if has_own else None,
            "secrets": [_secret(one) for one in file_secrets(cluster, task)],
            "env_file": [spec.env_file] if spec.env_file else None,
            "environment": {
                MERGE: Verbatim("*environment"),
                **rendered_file.without_shared(task, spec.own_environment),
                **dict.fromkeys(spec.secrets),
            },
            "ulimits": ulimits(spec),
            "labels": Anchored(spec.hostname, {**spec.labels, labels.RUN: RUN_ID}),
            "deploy": _deploy(task, spec),
        }
    )


def _deploy(task: Task, spec: ContainerSpec) -> Data:
    again = {"condition": Verbatim("none")}
    if spec.restarts:
        again = {"condition": Verbatim("on-failure"), "delay": Verbatim("1s")}
        again["max_attempts"] = Verbatim(spec.restarts)
    gpus = spec.devices and OneLine({"kind": Verbatim(GPU_KIND), "value": len(spec.devices.ids)})
    reserved = {"generic_resources": [{"discrete_resource_spec": gpus}]} if gpus else None
    pids = {} if spec.shared.bounds.pids is None else {"pids": spec.shared.bounds.pids}
    return present(
        {
            "replicas": 1,
            "endpoint_mode": Verbatim("dnsrr"),
            "labels": Verbatim(f"*{spec.hostname}"),
            "restart_policy": OneLine(again),
            "placement": {"constraints": task.nodes} if task.nodes else None,
            "resources": present({"limits": {**limits(spec), **pids}, "reservations": reserved}),
        }
    )


def _volumes(spec: SharedSpec, mounts: Iterable[Mount], shm: int | None = None) -> list[Data]:
    """The run's output directory, what is in memory, and what is mounted; secrets are not."""
    output = {
        "type": Verbatim("bind"),
        "source": Verbatim("${CLUSTER_KIT_OUTPUT:-./output}"),
        "target": Verbatim(spec.output),
    }
    found = [output, *(_in_memory(path, spec.bounds.tmp) for path in spec.tmpfs)]
    for mount in mounts:
        if not is_secret(mount):
            place = {"source": mount.source, "target": mount.target}
            found.append({"type": Verbatim("bind"), **place, "read_only": mount.read_only})
    return found if shm is None else [*found, _in_memory("/dev/shm", shm)]


def _in_memory(path: str, size: int | None) -> Data:
    bound = None if size is None else {"size": size}
    return present({"type": Verbatim("tmpfs"), "target": Verbatim(path), "tmpfs": bound})


def _secret(secret: FileSecret) -> Data:
    return {
        "source": secret.name,
        "target": secret.name,
        "uid": secret.uid,
        "gid": secret.gid,
        "mode": Verbatim("0400"),
    }


def _network(cluster: Cluster, spec: NetworkSpec) -> Data:
    options = {} if spec.mtu is None else {MTU: str(spec.mtu)}
    if cluster.encrypted:
        options["encrypted"] = ""
    return present(
        {
            "driver": Verbatim("overlay"),
            "attachable": True,
            "internal": spec.internal or None,
            "driver_opts": options,
            "ipam": {"config": [{"subnet": Verbatim(spec.subnet)}]},
            "labels": {**spec.labels, labels.RUN: RUN_ID},
        }
    )


def _config(cluster: Cluster, spec: SharedSpec) -> Mapping[str, Any]:
    """What all tasks are given as a file."""
    text = rendered_file.spec_text(cluster)
    return {
        "name": Verbatim(rendered_file.config_name(cluster, text)),
        "file": Verbatim(f"./{rendered_file.FILE}"),
        "labels": spec.labels,
    }
