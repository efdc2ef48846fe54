"""Renders a cluster's compose file. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from cluster_kit import labels
from cluster_kit.backends.compose.header import own_lines
from cluster_kit.backends.compose.sidecars import ANY_USER, HIDDEN, services_of
from cluster_kit.backends.container_spec import (
    ContainerSpec,
    NetworkSpec,
    SharedSpec,
    container_specs,
    network_spec,
)
from cluster_kit.backends.header import header
from cluster_kit.backends.interface import Build
from cluster_kit.backends.service import bounded, from_caller, in_memory, limits, logging, ulimits
from cluster_kit.backends.variables import BEACON_SECRET
from cluster_kit.backends.yaml import (
    Pair,
    Volume,
    boolean,
    flow,
    pairs,
    published,
    quote,
    volumes,
)
from cluster_kit.cluster import OWNER, Cluster
from cluster_kit.util import templating

MTU = "com.docker.network.driver.mtu"
GATEWAY_MODE = "com.docker.network.bridge.gateway_mode_ipv4"
"""`isolated`: the host has no address in an internal network; Docker Engine 28 and newer."""


@dataclass(frozen=True)
class Shared:
    """The values that all services share, as YAML text."""

    image: str
    pull_policy: str
    entrypoint: str
    user: str
    creates_output: bool
    depends_on: str
    init: str
    read_only: str
    cap_drop: str
    security_opt: str
    tmpfs: str
    pids: str
    logging: str
    stop_grace: str
    output: str
    mounts: tuple[Volume, ...]
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
    secrets: tuple[str, ...]
    hidden: str
    env_file: str
    shm: str
    ulimits: tuple[Pair, ...]
    ports: str
    mounts: tuple[Volume, ...]
    limits: tuple[Pair, ...]
    driver: str
    device_ids: str
    device_capabilities: str
    labels: tuple[Pair, ...]


def render(cluster: Cluster, build: Build | None = None) -> str:
    """Returns the compose file's text. Same cluster, same bytes.

    Args:
        build: how Compose builds the image if it is missing, None if it does not.
    """
    containers = container_specs(cluster)
    shared = containers[0].shared
    return templating.kit_template("compose.yaml.j2").render(
        header=header(cluster, shared.labels[labels.PLAN], own_lines(cluster, build)),
        build=_build(build),
        project=cluster.project,
        task=_shared(cluster, shared),
        services=[_service(cluster, container) for container in containers],
        sidecars=services_of(cluster),
        network=_network(network_spec(cluster)),
        run_label=labels.RUN,
        beacon_secret=BEACON_SECRET,
    )


def _shared(cluster: Cluster, spec: SharedSpec) -> Shared:
    return Shared(
        image=quote(spec.image),
        pull_policy="never" if spec.image_is_local else "missing",
        entrypoint=flow(spec.entrypoint) if spec.entrypoint else "",
        user=_user(cluster),
        creates_output=cluster.origin.portable,
        depends_on=flow(one.name for one in cluster.sidecars) if cluster.sidecars else "",
        init=boolean(spec.init),
        read_only=boolean(spec.read_only),
        cap_drop="[" + ", ".join(spec.cap_drop) + "]",
        security_opt=f'["no-new-privileges:{boolean(spec.no_new_privileges)}"]',
        tmpfs=in_memory(spec.tmpfs, spec.bounds),
        pids="" if spec.bounds.pids is None else str(spec.bounds.pids),
        logging=logging(spec.bounds),
        stop_grace=f"{spec.stop_grace_s}s",
        output=spec.output,
        mounts=volumes(spec.mounts),
        environment=pairs(spec.environment),
    )


def _network(spec: NetworkSpec) -> dict[str, object]:
    options = {} if spec.mtu is None else {MTU: str(spec.mtu)}
    if spec.isolated:
        options[GATEWAY_MODE] = "isolated"
    return {
        "subnet": str(spec.subnet),
        "gateway": str(spec.gateway),
        "internal": spec.internal,
        "options": pairs(options),
        "labels": pairs(spec.labels),
    }


def _user(cluster: Cluster) -> str:
    """The user of most containers; a portable file's is root until it has become OUTPUT's owner."""
    return ANY_USER if cluster.user == OWNER else quote(cluster.user)


def _build(build: Build | None) -> dict[str, object] | None:
    if build is None:
        return None
    arguments = {name: quote(value) for name, value in build.arguments.items()}
    if "BASE" in build.arguments:
        arguments["BASE"] = "${CLUSTER_KIT_BASE:-" + build.arguments["BASE"] + "}"
    return {
        "context": quote(build.context),
        "dockerfile": quote(build.dockerfile),
        "arguments": [Pair(name, value) for name, value in sorted(arguments.items())],
    }


def _service(cluster: Cluster, spec: ContainerSpec) -> Service:
    devices = spec.devices
    return Service(
        name=spec.hostname,
        container=spec.name,
        command=flow(spec.command),
        user="" if spec.user == cluster.user or _adopts(cluster, spec) else quote(spec.user),
        capabilities=flow(spec.cap_add) if spec.cap_add else "",
        restart=f"on-failure:{spec.restarts}" if spec.restarts else '"no"',
        cpu_shares="" if spec.cpu_shares is None else str(spec.cpu_shares),
        ip=str(spec.ip),
        environment=pairs(spec.own_environment),
        secrets=from_caller(spec.secrets),
        hidden=HIDDEN if spec.hidden else "",
        env_file=flow([spec.env_file]) if spec.env_file else "",
        shm="" if spec.shm is None else _size(spec.shm),
        ulimits=ulimits(spec),
        ports=published(spec.ports),
        mounts=volumes((*spec.shared.mounts, *spec.mounts)) if spec.mounts else (),
        # Some versions of Compose refuse limits without the service's `pids_limit` among them.
        limits=(*found, *bounded(spec)) if (found := limits(spec)) else (),
        driver=devices.driver if devices else "",
        device_ids=flow(devices.ids) if devices else "",
        device_capabilities="[" + ", ".join(devices.capabilities) + "]" if devices else "",
        labels=tuple(
            Pair(key, text if key == labels.ROLE else quote(text))
            for key, text in spec.labels.items()
        ),
    )


def _adopts(cluster: Cluster, spec: ContainerSpec) -> bool:
    """Whether it may as well start as the user that UID and GID name: it needs root for no more."""
    return cluster.user == OWNER and "NET_ADMIN" not in spec.cap_add


def _size(count: int) -> str:
    whole = count % 2**30 == 0
    return f"{count // 2**30}gb" if whole else f"{count}b"
