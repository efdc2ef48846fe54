"""Renders a cluster's stack file, for `docker stack deploy`. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from cluster_kit import labels
from cluster_kit.platforms import rendered_file
from cluster_kit.platforms.container import (
    ContainerSpec,
    NetworkSpec,
    SharedSpec,
    container_specs,
    network_spec,
)
from cluster_kit.platforms.rendered_file import FileSecret, file_secrets, header, is_secret
from cluster_kit.platforms.variables import BEACON_SECRET, GROWING, SHARED
from cluster_kit.platforms.yaml import (
    Pair,
    Volume,
    boolean,
    bounded,
    flow,
    from_caller,
    limits,
    logging,
    pairs,
    quote,
    ulimits,
    volumes,
)
from cluster_kit.resolved import Cluster, Task
from cluster_kit.util import templating

GPU_KIND = "GPU"
"""The kind of generic resource that nodes announce GPUs as, and NVIDIA's runtime reads."""
MTU = "com.docker.network.driver.mtu"


@dataclass(frozen=True)
class Shared:
    """The values that all services share, as YAML text."""

    image: str
    entrypoint: str
    user: str
    init: str
    read_only: str
    cap_drop: str
    stop_grace: str
    output: str
    mounts: tuple[Volume, ...]
    tmpfs: tuple[str, ...]
    tmp_size: str
    logging: str
    environment: tuple[Pair, ...]


@dataclass(frozen=True)
class Service:
    """One service's values as YAML text; "" for a key that it does not have."""

    name: str
    command: str
    user: str
    capabilities: str
    restarts: str
    environment: tuple[Pair, ...]
    from_caller: tuple[str, ...]
    env_file: str
    shm: str
    ulimits: tuple[Pair, ...]
    mounts: tuple[Volume, ...]
    secrets: tuple[FileSecret, ...]
    limits: tuple[Pair, ...]
    gpus: str
    constraints: str
    labels: tuple[Pair, ...]


def render(cluster: Cluster) -> str:
    """Returns the stack file: the same cluster gives the same text."""
    containers = container_specs(cluster)
    shared = containers[0].shared
    return templating.kit_template("stack.yaml.j2").render(
        header=header(cluster, shared.labels[labels.PLAN], own_lines(cluster)),
        task=_shared(cluster, shared),
        services=[
            _service(cluster, task, container)
            for task, container in zip(cluster.tasks, containers, strict=True)
        ],
        network=_network(cluster, network_spec(cluster)),
        gpu_kind=GPU_KIND,
        config={
            "file": rendered_file.FILE,
            "target": rendered_file.TARGET,
            "name": rendered_file.config_name(cluster, rendered_file.spec_text(cluster)),
            "labels": pairs(shared.labels),
        },
        secrets=file_secrets(cluster),
        run_label=labels.RUN,
        beacon_secret=BEACON_SECRET,
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


def _shared(cluster: Cluster, spec: SharedSpec) -> Shared:
    environment = {
        name: value for name, value in spec.environment.items() if name not in GROWING
    } | {SHARED: rendered_file.TARGET}
    return Shared(
        image=quote(spec.image),
        entrypoint=flow(spec.entrypoint) if spec.entrypoint else "",
        user=quote(cluster.user),
        init=boolean(spec.init),
        read_only=boolean(spec.read_only),
        cap_drop="[" + ", ".join(spec.cap_drop) + "]",
        stop_grace=f"{spec.stop_grace_s}s",
        output=spec.output,
        mounts=volumes(mount for mount in spec.mounts if not is_secret(mount)),
        tmpfs=tuple(spec.tmpfs),
        tmp_size="" if spec.bounds.tmp is None else str(spec.bounds.tmp),
        logging=logging(spec.bounds),
        environment=pairs(dict(sorted(environment.items()))),
    )


def _network(cluster: Cluster, spec: NetworkSpec) -> dict[str, object]:
    options = {} if spec.mtu is None else {MTU: str(spec.mtu)}
    if cluster.encrypted:
        options["encrypted"] = ""
    return {
        "subnet": str(spec.subnet),
        "internal": spec.internal,
        "options": pairs(options),
        "labels": pairs(spec.labels),
    }


def _service(cluster: Cluster, task: Task, spec: ContainerSpec) -> Service:
    own = rendered_file.without_shared(task, spec.own_environment)
    mounts = [mount for mount in (*spec.shared.mounts, *spec.mounts) if not is_secret(mount)]
    return Service(
        name=spec.hostname,
        command=flow(spec.command),
        user="" if spec.user == cluster.user else quote(spec.user),
        capabilities=flow(spec.cap_add) if spec.cap_add else "",
        restarts=str(spec.restarts) if spec.restarts else "",
        environment=pairs(own),
        from_caller=from_caller(spec.secrets),
        env_file=flow([spec.env_file]) if spec.env_file else "",
        shm="" if spec.shm is None else str(spec.shm),
        ulimits=ulimits(spec),
        mounts=volumes(mounts) if spec.mounts or spec.shm is not None else (),
        secrets=file_secrets(cluster, task),
        limits=(*limits(spec), *bounded(spec)),
        gpus=str(len(spec.devices.ids)) if spec.devices else "",
        constraints=flow(task.nodes) if task.nodes else "",
        labels=pairs(spec.labels),
    )
