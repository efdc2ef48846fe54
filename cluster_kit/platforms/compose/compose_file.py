"""Renders a cluster's compose file, and the file beside it with values of secrets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cluster_kit import labels
from cluster_kit.platforms.container import (
    ContainerSpec,
    NetworkSpec,
    SharedSpec,
    SidecarSpec,
    container_specs,
    network_spec,
    sidecar_specs,
)
from cluster_kit.platforms.rendered_file import Build, header
from cluster_kit.platforms.variables import BEACON_SECRET
from cluster_kit.platforms.yaml import (
    Pair,
    Volume,
    boolean,
    bounded,
    flow,
    from_caller,
    in_memory,
    key,
    limits,
    logging,
    pairs,
    published,
    quote,
    ulimits,
    volumes,
)
from cluster_kit.resolved import OWNER, Cluster
from cluster_kit.util import templating
from cluster_kit.workspace import RENDERED, ignore_in_git, write_atomically

HERE_ONLY = "It is for this host and this user; with --portable the command makes one for any."


def own_lines(cluster: Cluster, build: Build | None) -> list[str]:
    """Returns the lines: where it runs, who gets the results, how its image comes."""
    own = _portable(cluster, build) if cluster.origin.portable else [HERE_ONLY]
    return [*own, *_beside(cluster)]


def _beside(cluster: Cluster) -> list[str]:
    """What plain Compose does about sidecars, which do not end by themselves."""
    names = ", ".join(one.name for one in cluster.sidecars)
    if not names:
        return []
    return [
        "`docker compose up` ends when the tasks have ended. It does not end the sidecars",
        f"({names}): `docker compose down` does.",
    ]


def _portable(cluster: Cluster, build: Build | None) -> list[str]:
    lines = [
        "It runs on any host: `docker compose up` in this directory of a copy of the whole folder.",
        "Results, in output/, belong to whoever owns that directory, or to the variables UID, GID.",
    ]
    if cluster.dockerfile is not None:
        return [
            *lines,
            "The first `docker compose up` builds the image, which needs the kit's in it.",
        ]
    if cluster.variant is None:
        return lines
    by_kit = f"cluster-kit image build --variant {cluster.variant}"
    if cluster.requirements or cluster.tensorflow:
        by_kit = f"cluster-kit image build {cluster.source.removesuffix('.toml')}"
    if build is None:
        return [*lines, f"The image has to be there: `{by_kit}` builds it."]
    return [
        *lines,
        "The first `docker compose up` builds the image, on Python's own from a registry or on",
        f"CLUSTER_KIT_BASE; `{by_kit}` does so without a registry, too.",
    ]


HIDDEN = "secrets.yaml"
"""The file beside it that has the values of secrets (see `hidden`)."""
ANY_USER = '"${UID:-0}:${GID:-${UID:-0}}"'
"""Whom UID and GID name; else root, which gives that up for the owner of the output directory."""


@dataclass(frozen=True)
class SidecarService:
    """One sidecar's values as YAML text; "" for a key that it does not have."""

    name: str
    container: str
    image: str
    pull_policy: str
    init: str
    entrypoint: str
    command: str
    user: str
    security_opt: str
    cap_drop: str
    read_only: str
    tmpfs: str
    pids: str
    logging: str
    stop_grace: str
    ip: str
    environment: tuple[Pair, ...]
    secrets: tuple[str, ...]
    hidden: str
    mounts: tuple[Volume, ...]
    ports: str
    labels: tuple[Pair, ...]


def services_of(cluster: Cluster) -> list[SidecarService]:
    """Returns the service of every sidecar, in their order."""
    return [_sidecar_service(cluster, spec) for spec in sidecar_specs(cluster)]


def _sidecar_service(cluster: Cluster, spec: SidecarSpec) -> SidecarService:
    user = ANY_USER if cluster.user == OWNER else quote(spec.user)
    return SidecarService(
        name=key(spec.hostname),
        container=spec.name,
        image=quote(spec.image),
        pull_policy="never" if spec.image_is_local else "missing",
        init=boolean(spec.init),
        entrypoint="" if spec.entrypoint is None else flow(spec.entrypoint),
        command=flow(spec.command) if spec.command else "",
        user=user if spec.user else "",
        security_opt=f'["no-new-privileges:{boolean(spec.no_new_privileges)}"]',
        cap_drop="[" + ", ".join(spec.cap_drop) + "]" if spec.cap_drop else "",
        read_only=boolean(spec.read_only) if spec.read_only else "",
        tmpfs=in_memory(spec.tmpfs, spec.bounds) if spec.tmpfs else "",
        pids="" if spec.bounds.pids is None else str(spec.bounds.pids),
        logging=logging(spec.bounds),
        stop_grace=f"{spec.stop_grace_s}s",
        ip=str(spec.ip),
        environment=pairs(spec.environment),
        secrets=from_caller(spec.secrets),
        hidden=HIDDEN if spec.hidden else "",
        mounts=volumes(spec.mounts),
        ports=published(spec.ports),
        labels=pairs(spec.labels),
    )


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


_TOP = """\
# cluster-kit wrote this: values that look like secrets, which compose.yaml takes from here.
# Only you may read it, and Git leaves it out. Do not edit: change the manifest.
services:
"""


def render_hidden(cluster: Cluster) -> str:
    """The file's text: an environment for each container with anything to hide; "" without one."""
    lines = []
    hidden = [(spec.hostname, spec.hidden) for spec in container_specs(cluster)]
    hidden += [(spec.hostname, spec.hidden) for spec in sidecar_specs(cluster)]
    for name, variables in hidden:
        if variables:
            lines += [f"  {key(name)}:", "    environment:"]
            lines += [f"      {pair.name}: {pair.value}" for pair in pairs(variables)]
    return _TOP + "".join(f"{line}\n" for line in lines) if lines else ""


def write_hidden(folder: Path, cluster: Cluster) -> None:
    """Write the file, for its owner alone, or remove an old one; raises OSError."""
    text = render_hidden(cluster)
    if text:
        ignore_in_git(folder, RENDERED)
        write_atomically(folder / HIDDEN, text, mode=0o600)
    else:
        (folder / HIDDEN).unlink(missing_ok=True)


def is_current(folder: Path, cluster: Cluster) -> bool:
    """Whether the file is as it would be written."""
    try:
        return (folder / HIDDEN).read_text(encoding="utf-8") == render_hidden(cluster)
    except FileNotFoundError:
        return not render_hidden(cluster)
    except (OSError, ValueError):
        return False
