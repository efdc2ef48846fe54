"""Renders a cluster's compose file, and the file beside it with values of secrets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

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
from cluster_kit.platforms.rendered_file import Build, header, limits, logging, ulimits
from cluster_kit.platforms.variables import BEACON_SECRET, has_secrets
from cluster_kit.platforms.yaml import Verbatim, block, present
from cluster_kit.resolved import LOOPBACK, OWNER, Cluster, Mount, Port
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
"""The file beside it that has the values of secrets (see `render_hidden`)."""
ANY_USER = Verbatim('"${UID:-0}:${GID:-${UID:-0}}"')
"""Whom UID and GID name; else root, which gives that up for the owner of the output directory."""
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
    containers = container_specs(cluster)
    shared = containers[0].shared
    services = {spec.hostname: _service(cluster, spec) for spec in containers}
    if build is not None:
        first = containers[0].hostname
        services[first] = _with_build(services[first], build)
    sidecars = {spec.hostname: _sidecar(cluster, spec) for spec in sidecar_specs(cluster)}
    return templating.kit_template("compose.yaml.j2", yaml=block).render(
        header=header(cluster, shared.labels[labels.PLAN], own_lines(cluster, build)),
        project=cluster.project,
        task=_shared(cluster, shared),
        environment={**shared.environment, BEACON_SECRET: Verbatim(f"${{{BEACON_SECRET}:-}}")},
        services=[{name: service} for name, service in (services | sidecars).items()],
        network=_network(network_spec(cluster)),
    )


def _shared(cluster: Cluster, spec: SharedSpec) -> Data:
    """What all tasks share."""
    return present(
        {
            "image": spec.image,
            "pull_policy": _pull_policy(spec),
            "entrypoint": spec.entrypoint,
            "init": spec.init,
            "user": ANY_USER if cluster.user == OWNER else cluster.user,
            "read_only": spec.read_only,
            "cap_drop": _words(spec.cap_drop),
            "security_opt": _security(spec),
            "tmpfs": _in_memory(spec),
            "pids_limit": spec.bounds.pids,
            "logging": logging(spec.bounds),
            "stop_grace_period": Verbatim(f"{spec.stop_grace_s}s"),
            "depends_on": [one.name for one in cluster.sidecars],
            "volumes": _volumes(cluster, spec, spec.mounts),
        }
    )


def _service(cluster: Cluster, spec: ContainerSpec) -> Data:
    """What one task has besides."""
    own_user = spec.user != cluster.user and not _adopts(cluster, spec)
    mounts = (*spec.shared.mounts, *spec.mounts)
    return present(
        {
            MERGE: Verbatim("*task"),
            "extends": _extends(cluster, spec),
            "container_name": Verbatim(spec.name),
            "hostname": Verbatim(spec.hostname),
            "command": None if _hides(cluster, spec.command) else spec.command,
            "user": spec.user if own_user else None,
            "cap_add": spec.cap_add,
            "restart": Verbatim(f"on-failure:{spec.restarts}" if spec.restarts else '"no"'),
            "cpu_shares": spec.cpu_shares,
            "networks": _address(spec),
            "volumes": _volumes(cluster, spec.shared, mounts) if spec.mounts else None,
            "env_file": [spec.env_file] if spec.env_file else None,
            "environment": {
                MERGE: Verbatim("*environment"),
                **spec.own_environment,
                **dict.fromkeys(spec.secrets),
            },
            "shm_size": None if spec.shm is None else Verbatim(_size(spec.shm)),
            "ulimits": ulimits(spec),
            "ports": _published(spec.ports),
            "deploy": _deploy(spec),
            "labels": _labels(spec.labels),
        }
    )


def _sidecar(cluster: Cluster, spec: SidecarSpec) -> Data:
    user = ANY_USER if cluster.user == OWNER else spec.user
    return present(
        {
            "extends": _extends(cluster, spec),
            "image": spec.image,
            "pull_policy": _pull_policy(spec),
            "container_name": Verbatim(spec.name),
            "hostname": spec.hostname,
            "attach": False,
            "init": spec.init,
            "entrypoint": None if _hides(cluster, spec.entrypoint) else _entrypoint(spec),
            "command": None if _hides(cluster, spec.command) else spec.command,
            "user": user if spec.user else None,
            "read_only": spec.read_only or None,
            "cap_drop": _words(spec.cap_drop),
            "security_opt": _security(spec),
            "tmpfs": _in_memory(spec),
            "pids_limit": spec.bounds.pids,
            "logging": logging(spec.bounds),
            "restart": Verbatim('"no"'),
            "stop_grace_period": Verbatim(f"{spec.stop_grace_s}s"),
            "networks": _address(spec),
            "volumes": [_bind(mount) for mount in spec.mounts],
            "environment": {**spec.environment, **dict.fromkeys(spec.secrets)},
            "ports": _published(spec.ports),
            "labels": _labels(spec.labels),
        }
    )


EMPTY = Verbatim("[]")
"""No entry point at all, which `present` would leave out."""


def _entrypoint(spec: SidecarSpec) -> list[str] | Verbatim | None:
    return None if spec.entrypoint is None else list(spec.entrypoint) or EMPTY


def _hides(cluster: Cluster, words: Sequence[str] | None) -> bool:
    """Whether a command line is beside the file; a portable one is refused, or has it."""
    return not cluster.origin.portable and has_secrets(words or ())


def _with_build(service: Data, build: Build) -> Data:
    """The first service, which says how the image of all is built."""
    arguments: Data = dict(build.arguments)
    if "BASE" in arguments:
        arguments["BASE"] = Verbatim("${CLUSTER_KIT_BASE:-" + build.arguments["BASE"] + "}")
    made = {
        "context": build.context,
        "dockerfile": build.dockerfile,
        "network": Verbatim("${CLUSTER_KIT_BUILD_NETWORK:-default}"),
        "args": dict(sorted(arguments.items())),
    }
    return {**service, "build": present(made)}


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


def _deploy(spec: ContainerSpec) -> Data | None:
    limited = limits(spec)
    if limited and spec.shared.bounds.pids is not None:
        # Some versions of Compose refuse limits without the service's `pids_limit` among them.
        limited |= {"pids": spec.shared.bounds.pids}
    devices = spec.devices and {
        "driver": Verbatim(spec.devices.driver),
        "device_ids": spec.devices.ids,
        "capabilities": _words(spec.devices.capabilities),
    }
    resources = {
        "limits": limited,
        "reservations": {"devices": [devices]} if devices else None,
    }
    return {"resources": present(resources)} if present(resources) else None


def _extends(cluster: Cluster, spec: ContainerSpec | SidecarSpec) -> Data | None:
    """Where its variables with secrets are, and a command line with one."""
    if not _beside_the_file(cluster, spec):
        return None
    return {"file": Verbatim(HIDDEN), "service": spec.hostname}


def _beside_the_file(cluster: Cluster, spec: ContainerSpec | SidecarSpec) -> Data:
    """What of a service only its owner may read."""
    lines = {"command": spec.command}
    if isinstance(spec, SidecarSpec) and spec.entrypoint:
        lines = {"entrypoint": spec.entrypoint, **lines}
    hidden = {key: words for key, words in lines.items() if _hides(cluster, words)}
    return present({**hidden, "environment": spec.hidden})


def _address(spec: ContainerSpec | SidecarSpec) -> Data:
    return {"cluster": {"ipv4_address": Verbatim(spec.ip)}}


def _labels(given: Mapping[str, str]) -> Data:
    return {
        **{name: Verbatim(text) if name == labels.ROLE else text for name, text in given.items()},
        labels.RUN: RUN_ID,
    }


def _pull_policy(spec: SharedSpec | SidecarSpec) -> Verbatim:
    return Verbatim("never" if spec.image_is_local else "missing")


def _security(spec: SharedSpec | SidecarSpec) -> list[Verbatim]:
    return [Verbatim(f'"no-new-privileges:{str(spec.no_new_privileges).lower()}"')]


def _words(words: Iterable[str]) -> list[Verbatim]:
    return [Verbatim(word) for word in words]


def _in_memory(spec: SharedSpec | SidecarSpec) -> list[Verbatim]:
    """The directories in memory, each with its mode and, if it is bounded, its size."""
    size = "" if spec.bounds.tmp is None else f",size={spec.bounds.tmp}"
    return [Verbatim(f'"{path}:mode={mode:o}{size}"') for path, mode in spec.tmpfs.items()]


def _volumes(cluster: Cluster, spec: SharedSpec, mounts: Iterable[Mount]) -> list[Data]:
    """The run's output directory, and what is mounted."""
    output: Data = {
        "type": Verbatim("bind"),
        "source": OUTPUT_HERE,
        "target": Verbatim(spec.output),
    }
    if cluster.origin.portable:
        output["bind"] = {"create_host_path": True}
    return [output, *map(_bind, mounts)]


def _bind(mount: Mount) -> Data:
    return {
        "type": Verbatim("bind"),
        "source": mount.source,
        "target": mount.target,
        "read_only": mount.read_only,
        "bind": {"create_host_path": False},
    }


def _published(ports: Iterable[Port]) -> list[str]:
    """Ports, on LOOPBACK only."""
    return [f"{LOOPBACK}:{port.host}:{port.container}" for port in ports]


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
    """The file's text: what each container with anything to hide has of it; "" without one."""
    hidden = {spec.hostname: _beside_the_file(cluster, spec) for spec in container_specs(cluster)}
    hidden |= {spec.hostname: _beside_the_file(cluster, spec) for spec in sidecar_specs(cluster)}
    services = {name: values for name, values in hidden.items() if values}
    return f"{_TOP}{block(services, 2)}\n" if services else ""


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
