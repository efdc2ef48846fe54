"""Renders a cluster's stack file, for `docker stack deploy`. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cluster_kit import labels
from cluster_kit.platforms import rendered_file
from cluster_kit.platforms.container import (
    Container,
    NetworkSpec,
    every_task,
    network_spec,
    task_containers,
)
from cluster_kit.platforms.rendered_file import (
    Anchored,
    FileSecret,
    OneLine,
    Verbatim,
    block,
    file_secrets,
    header,
    is_secret,
    limits,
    logging,
    present,
    ulimits,
    with_content,
)
from cluster_kit.platforms.variables import BEACON_SECRET, GROWING, SHARED
from cluster_kit.resolved import Cluster, Task
from cluster_kit.util import templating

GPU_KIND = "GPU"
"""The kind of generic resource under which nodes announce GPUs; NVIDIA's runtime reads it."""
MTU = "com.docker.network.driver.mtu"
RUN_ID = Verbatim("${CLUSTER_KIT_RUN:-}")
MERGE = Verbatim("<<")
Data = dict[str, Any]


def render(cluster: Cluster) -> str:
    """Returns the stack file: the same cluster gives the same text."""
    common, containers = every_task(cluster), task_containers(cluster)
    shared = _shared(cluster, common)
    services = zip(cluster.tasks, containers, strict=True)
    secret_files = file_secrets(cluster)
    text = templating.kit_template("stack.yaml.j2", yaml=block).render(
        header=header(cluster, common.labels[labels.PLAN], own_lines(cluster)),
        task=shared,
        environment=_environment(common),
        services=[
            {container.hostname: _task(cluster, shared, common, task, container)}
            for task, container in services
        ],
        network=_network(cluster, network_spec(cluster)),
        config=_config(cluster, common),
        secrets={
            container.name: {"file": container.file, "labels": common.labels}
            for container in secret_files
        },
    )
    return with_content(text)


def own_lines(cluster: Cluster) -> list[str]:
    """The comment lines at the beginning of the file."""
    mounted = "output/, and all that is mounted, must be there at the same path on every node."
    return [
        f"`docker stack deploy --resolve-image never -c stack.yaml {cluster.project}` starts it on",
        "a swarm's manager. Every node needs its image: `docker save … | ssh NODE docker load`.",
        mounted,
        f"It does not end by itself: `docker stack rm {cluster.project}`.",
    ]


OWN = ("hostname", "cap_add", "environment", "labels", "deploy")
"""Keys that each task's service has itself, even if all services have the same value."""


def _service(cluster: Cluster, container: Container, task: Task | None = None) -> Data:
    """The service of a task's container; without a task, the settings that all services share."""
    return present(
        {
            "image": container.image,
            "entrypoint": container.entrypoint,
            "init": container.init,
            "hostname": Verbatim(container.hostname),
            "command": container.command,
            "user": container.user,
            "read_only": container.read_only,
            "cap_drop": [Verbatim(word) for word in container.cap_drop],
            "cap_add": container.cap_add,
            "logging": logging(container.bounds),
            "stop_grace_period": Verbatim(f"{container.stop_grace_s}s"),
            "networks": [Verbatim("cluster")],
            "configs": [{"source": Verbatim("cluster"), "target": Verbatim(rendered_file.TARGET)}],
            "volumes": _volumes(container),
            "secrets": [_secret(one) for one in file_secrets(cluster, task)] if task else None,
            "env_file": [container.env_file] if container.env_file else None,
            "environment": container.environment,
            "ulimits": ulimits(container),
            "labels": Anchored(container.hostname, {**container.labels, labels.RUN: RUN_ID}),
            "deploy": _deploy(container, task.nodes if task else ()),
        }
    )


def _shared(cluster: Cluster, common: Container) -> Data:
    """The settings that all services share."""
    return {name: value for name, value in _service(cluster, common).items() if name not in OWN}


def _environment(common: Container) -> Data:
    """The variables of all services; values that grow with the cluster are in a file instead."""
    variables = {name: value for name, value in common.environment.items() if name not in GROWING}
    variables[SHARED] = rendered_file.TARGET
    return dict(sorted(variables.items())) | {BEACON_SECRET: Verbatim(f"${{{BEACON_SECRET}:-}}")}


def _task(
    cluster: Cluster, shared: Data, common: Container, task: Task, container: Container
) -> Data:
    """The service of one task, without the settings that all tasks share."""
    body = _service(cluster, container, task)
    body["environment"] = {
        MERGE: Verbatim("*environment"),
        **rendered_file.without_shared(task, container.besides(common.environment)),
        **dict.fromkeys(container.secrets),
    }
    differs = {name: value for name, value in body.items() if shared.get(name) != value}
    return {MERGE: Verbatim("*task"), **differs}


def _deploy(container: Container, nodes: Sequence[str]) -> Data:
    again = {"condition": Verbatim("none")}
    if container.restarts:
        again = {"condition": Verbatim("on-failure"), "delay": Verbatim("1s")}
        again["max_attempts"] = Verbatim(container.restarts)
    devices, bound = container.devices, container.bounds.pids
    gpus = devices and OneLine({"kind": Verbatim(GPU_KIND), "value": len(devices.ids)})
    reserved = {"generic_resources": [{"discrete_resource_spec": gpus}]} if gpus else None
    pids = {} if bound is None else {"pids": bound}
    return present(
        {
            "replicas": 1,
            "endpoint_mode": Verbatim("dnsrr"),
            "labels": Verbatim(f"*{container.hostname}"),
            "restart_policy": OneLine(again),
            "placement": {"constraints": nodes} if nodes else None,
            "resources": present(
                {"limits": {**limits(container), **pids}, "reservations": reserved}
            ),
        }
    )


def _volumes(container: Container) -> list[Data]:
    """The mounts: the run's output directory, file systems in memory, and the manifest's mounts
    except secrets."""
    output = {
        "type": Verbatim("bind"),
        "source": Verbatim("${CLUSTER_KIT_OUTPUT:-./output}"),
        "target": Verbatim(container.output),
    }
    volumes = [output, *(_in_memory(path, container.bounds.tmp) for path in container.tmpfs)]
    for mount in container.mounts:
        if not is_secret(mount):
            place = {"source": mount.source, "target": mount.target}
            volumes.append({"type": Verbatim("bind"), **place, "read_only": mount.read_only})
    if container.shm_size is not None:
        volumes.append(_in_memory("/dev/shm", container.shm_size))
    return volumes


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


def _config(cluster: Cluster, common: Container) -> Mapping[str, Any]:
    """The content of the file that all tasks get."""
    text = rendered_file.spec_text(cluster)
    return {
        "name": Verbatim(rendered_file.config_name(cluster, text)),
        "file": Verbatim(f"./{rendered_file.FILE}"),
        "labels": common.labels,
    }
