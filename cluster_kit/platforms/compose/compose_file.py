"""Renders a cluster's Compose file, and a second file with values of secrets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cluster_kit import labels
from cluster_kit.platforms.container import (
    Container,
    NetworkSpec,
    every_task,
    network_spec,
    sidecar_containers,
    task_containers,
)
from cluster_kit.platforms.rendered_file import (
    Build,
    Verbatim,
    block,
    header,
    key,
    limits,
    logging,
    present,
    ulimits,
    with_content,
)
from cluster_kit.platforms.variables import BEACON_SECRET, has_secrets
from cluster_kit.resolved import LOOPBACK, OWNER, Cluster, Mount, Port
from cluster_kit.util import templating
from cluster_kit.workspace import RENDERED, ignore_in_git, write_atomically

HERE_ONLY = "It is for this host and this user; with --portable the command makes one for any."


def own_lines(cluster: Cluster, build: Build | None) -> list[str]:
    """The comment lines: how to run the file, who owns the results, and how to get the image."""
    lines = _portable(cluster, build) if cluster.origin.portable else [HERE_ONLY]
    return [*lines, *_beside(cluster)]


def _beside(cluster: Cluster) -> list[str]:
    """A comment about sidecars, which plain Compose does not end."""
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
"""The second file, which has the values of secrets (see `render_hidden`)."""
ANY_USER = Verbatim('"${UID:-0}:${GID:-${UID:-0}}"')
"""The user that UID and GID name; else root, which then switches to the owner of the output
directory."""
OUTPUT_HERE = Verbatim("${CLUSTER_KIT_OUTPUT:-./output}")
RUN_ID = Verbatim("${CLUSTER_KIT_RUN:-}")
MERGE = Verbatim("<<")
MTU = "com.docker.network.driver.mtu"
GATEWAY_MODE = "com.docker.network.bridge.gateway_mode_ipv4"
"""`isolated`: the host has no address in an internal network; Docker Engine 28 and newer."""
Data = dict[str, Any]


def render(cluster: Cluster, build: Build | None = None) -> str:
    """Returns the compose file's text. Same cluster, same bytes.

    Args:
        build: how Compose builds the image if it is missing, None if it does not.
    """
    common, containers = every_task(cluster), task_containers(cluster)
    shared = _shared(cluster, common)
    services = {one.hostname: _task(cluster, shared, common, one) for one in containers}
    if build is not None:
        first = containers[0].hostname
        services[first] = _with_build(services[first], build)
    for one in sidecar_containers(cluster):
        services[one.hostname] = {**_service(cluster, one), "attach": False}
    text = templating.kit_template("compose.yaml.j2", yaml=block).render(
        header=header(cluster, common.labels[labels.PLAN], own_lines(cluster, build)),
        project=cluster.project,
        task=shared,
        environment={**common.environment, BEACON_SECRET: Verbatim(f"${{{BEACON_SECRET}:-}}")},
        services=[{name: service} for name, service in services.items()],
        network=_network(network_spec(cluster)),
    )
    return with_content(text)


def _service(cluster: Cluster, container: Container) -> Data:
    """The whole service of one container, a task's or a sidecar's."""
    return present(
        {
            "extends": _extends(cluster, container),
            "image": container.image,
            "pull_policy": Verbatim("never" if container.image_is_local else "missing"),
            "container_name": Verbatim(container.name),
            "hostname": Verbatim(key(container.hostname)),
            "entrypoint": None if _hides(cluster, container.entrypoint) else _entrypoint(container),
            "init": container.init,
            "command": None if _hides(cluster, container.command) else container.command,
            "user": _user(cluster, container),
            "read_only": container.read_only,
            "cap_drop": _words(container.cap_drop),
            "cap_add": container.cap_add,
            "security_opt": _security(container),
            "tmpfs": _in_memory(container),
            "pids_limit": container.bounds.pids,
            "logging": logging(container.bounds),
            "restart": Verbatim(f"on-failure:{n}" if (n := container.restarts) else '"no"'),
            "stop_grace_period": Verbatim(f"{container.stop_grace_s}s"),
            "cpu_shares": container.cpu_shares,
            "networks": {"cluster": {"ipv4_address": Verbatim(container.ip)}},
            "volumes": _volumes(cluster, container),
            "env_file": [container.env_file] if container.env_file else None,
            "environment": {**container.environment, **dict.fromkeys(container.secrets)},
            "shm_size": container.shm_size and Verbatim(_size(container.shm_size)),
            "ulimits": ulimits(container),
            "ports": _published(container.ports),
            "deploy": _deploy(container),
            "healthcheck": _healthcheck(cluster, container),
            "labels": _labels(container.labels),
        }
    )


def _healthcheck(cluster: Cluster, container: Container) -> Data | None:
    """The command that checks whether a sidecar is ready, repeated until the start deadline."""
    if not container.is_ready:
        return None
    return {
        "test": ["CMD", *container.is_ready],
        "interval": Verbatim("1s"),
        "timeout": Verbatim("5s"),
        "retries": max(1, round(cluster.deadlines.start)),
    }


def _started_before(cluster: Cluster) -> Data | list[str]:
    """The sidecars that are started before the tasks; some must also be ready before."""
    names, healthy = [one.name for one in cluster.sidecars], awaited(cluster)
    if not healthy:
        return names
    return {
        name: {"condition": Verbatim(f"service_{'healthy' if name in healthy else 'started'}")}
        for name in names
    }


def awaited(cluster: Cluster) -> list[str]:
    """The sidecars for whose command `ready` tasks wait."""
    return [one.name for one in cluster.sidecars if one.ready and one.ready.command]


OWN = ("container_name", "hostname", "cap_add", "restart", "networks", "environment", "labels")
"""The keys that each task's service has itself, even if all services have the same value."""


def _shared(cluster: Cluster, common: Container) -> Data:
    """The settings that all tasks share, including the sidecars that are started before them."""
    body = _service(cluster, common)
    shared = {name: value for name, value in body.items() if name not in OWN}
    return present({**shared, "depends_on": _started_before(cluster)})


def _task(cluster: Cluster, shared: Data, common: Container, container: Container) -> Data:
    """The service of one task, without the settings that all tasks share."""
    body = _service(cluster, container)
    body["environment"] = {
        MERGE: Verbatim("*environment"),
        **container.besides(common.environment),
        **dict.fromkeys(container.secrets),
    }
    differs = {name: value for name, value in body.items() if shared.get(name) != value}
    return {MERGE: Verbatim("*task"), **differs}


EMPTY = Verbatim("[]")
"""An empty entry point, which `present` would leave out."""


def _entrypoint(container: Container) -> list[str] | Verbatim | None:
    return None if container.entrypoint is None else list(container.entrypoint) or EMPTY


def _user(cluster: Cluster, container: Container) -> str | None:
    if not container.user:
        return None
    # It may start as the user that UID and GID name, unless it needs root for other reasons.
    adopts = cluster.user == OWNER and "NET_ADMIN" not in container.cap_add
    return ANY_USER if adopts else container.user


def _hides(cluster: Cluster, words: Sequence[str] | None) -> bool:
    """Whether the command line is in the hidden file; a portable file is refused, or contains
    it."""
    return not cluster.origin.portable and has_secrets(words or ())


def _with_build(service: Data, build: Build) -> Data:
    """The first service, with the build settings of the image of all services."""
    arguments: Data = dict(build.arguments)
    if "BASE" in arguments:
        arguments["BASE"] = Verbatim("${CLUSTER_KIT_BASE:-" + build.arguments["BASE"] + "}")
    recipe = {
        "context": build.context,
        "dockerfile": build.dockerfile,
        "network": Verbatim("${CLUSTER_KIT_BUILD_NETWORK:-default}"),
        "args": dict(sorted(arguments.items())),
    }
    return {**service, "build": present(recipe)}


def _network(spec: NetworkSpec) -> Data:
    options = present(
        {
            MTU: None if spec.mtu is None else str(spec.mtu),
            GATEWAY_MODE: "isolated" if spec.isolated else None,
        }
    )
    address = {"subnet": Verbatim(spec.subnet), "gateway": Verbatim(spec.gateway)}
    return present(
        {
            "driver": Verbatim("bridge"),
            "internal": spec.internal or None,
            "driver_opts": options,
            "ipam": {"config": [address]},
            "labels": {**spec.labels, labels.RUN: RUN_ID},
        }
    )


def _deploy(container: Container) -> Data | None:
    limited = limits(container)
    if limited and container.bounds.pids is not None:
        # Some versions of Compose refuse limits without the service's `pids_limit` among them.
        limited |= {"pids": container.bounds.pids}
    devices = container.devices and {
        "driver": Verbatim(container.devices.driver),
        "device_ids": container.devices.ids,
        "capabilities": _words(container.devices.capabilities),
    }
    resources = {
        "limits": limited,
        "reservations": {"devices": [devices]} if devices else None,
    }
    return {"resources": present(resources)} if present(resources) else None


def _extends(cluster: Cluster, container: Container) -> Data | None:
    """A reference to the hidden file with its secret variables, and with its command line if that
    has a secret."""
    if not _beside_the_file(cluster, container):
        return None
    return {"file": Verbatim(HIDDEN), "service": container.hostname}


def _beside_the_file(cluster: Cluster, container: Container) -> Data:
    """The part of a service that only the file's owner may read."""
    lines = {"entrypoint": container.entrypoint, "command": container.command}
    hidden = {name: words for name, words in lines.items() if _hides(cluster, words)}
    return present({**hidden, "environment": container.hidden})


def _labels(given: Mapping[str, str]) -> Data:
    return {
        **{name: Verbatim(text) if name == labels.ROLE else text for name, text in given.items()},
        labels.RUN: RUN_ID,
    }


def _security(container: Container) -> list[Verbatim]:
    return [Verbatim(f'"no-new-privileges:{str(container.no_new_privileges).lower()}"')]


def _words(words: Iterable[str]) -> list[Verbatim]:
    return [Verbatim(word) for word in words]


def _in_memory(container: Container) -> list[Verbatim]:
    """The directories in memory, each with its mode and, if it is limited, its size."""
    size = "" if container.bounds.tmp is None else f",size={container.bounds.tmp}"
    return [Verbatim(f'"{path}:mode={mode:o}{size}"') for path, mode in container.tmpfs.items()]


def _volumes(cluster: Cluster, container: Container) -> list[Data]:
    """The mounts: the run's output directory, and those of the manifest."""
    mounts = [_bind(mount) for mount in container.mounts]
    if not container.output:
        return mounts
    output: Data = {
        "type": Verbatim("bind"),
        "source": OUTPUT_HERE,
        "target": Verbatim(container.output),
    }
    if cluster.origin.portable:
        output["bind"] = {"create_host_path": True}
    return [output, *mounts]


def _bind(mount: Mount) -> Data:
    return {
        "type": Verbatim("bind"),
        "source": mount.source,
        "target": mount.target,
        "read_only": mount.read_only,
        "bind": {"create_host_path": False},
    }


def _published(ports: Iterable[Port]) -> list[str]:
    """The published ports, on LOOPBACK only."""
    return [f"{LOOPBACK}:{port.host}:{port.container}" for port in ports]


def _size(count: int) -> str:
    whole = count % 2**30 == 0
    return f"{count // 2**30}gb" if whole else f"{count}b"


_TOP = """\
# cluster-kit wrote this: values that look like secrets, which compose.yaml takes from here.
# Only you may read it, and Git leaves it out. Do not edit: change the manifest.
services:
"""


def render_hidden(cluster: Cluster) -> str:
    """The text of the hidden file: the secret settings of each container; "" if there are none."""
    containers = (*task_containers(cluster), *sidecar_containers(cluster))
    hidden = {one.hostname: _beside_the_file(cluster, one) for one in containers}
    services = {name: values for name, values in hidden.items() if values}
    return f"{_TOP}{block(services, 2)}\n" if services else ""


def write_hidden(folder: Path, cluster: Cluster) -> None:
    """Write the hidden file, readable only by its owner, or remove an old one; raises OSError."""
    text = render_hidden(cluster)
    if text:
        ignore_in_git(folder, RENDERED)
        write_atomically(folder / HIDDEN, text, mode=0o600)
    else:
        (folder / HIDDEN).unlink(missing_ok=True)


def is_current(folder: Path, cluster: Cluster) -> bool:
    """Whether the hidden file is the same as it would be written now."""
    try:
        return (folder / HIDDEN).read_text(encoding="utf-8") == render_hidden(cluster)
    except FileNotFoundError:
        return not render_hidden(cluster)
    except (OSError, ValueError):
        return False
