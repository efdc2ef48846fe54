"""Containers, events and secrets as the Docker engine describes them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from cluster_kit import labels
from cluster_kit.platforms.docker.docker_socket import role_of
from cluster_kit.platforms.engine import SIDECAR, Container, Event, seconds_of
from cluster_kit.platforms.variables import masked_in, secret_in
from cluster_kit.resolved import OUTPUT, OWNER
from cluster_kit.util.masking import looks_secret, option_values

_INDEX = re.compile("[0-9]{1,9}")
"""An image can have labels: a container without a task's labels is not an error."""


def container_of(attributes: Mapping[str, Any]) -> Container:
    """A container with the kit's labels, from the attributes that `docker inspect` shows."""
    state, tags = attributes["State"], attributes["Config"]["Labels"]
    networks = attributes["NetworkSettings"]["Networks"].values()
    addresses = [(n.get("IPAMConfig") or {}).get("IPv4Address") for n in networks]
    restarting = state["Status"] == "restarting"  # the engine reports it as running, too
    alive = (state["Running"] and not restarting) or state["Status"] == "created"
    outputs = [m["Source"] for m in attributes["Mounts"] if m["Destination"] == OUTPUT]
    return Container(
        id=attributes["Id"],
        cluster=tags[labels.CLUSTER],
        name=tags.get(labels.SIDECAR) or f"{tags.get(labels.ROLE)}-{tags.get(labels.INDEX)}",
        role=role_of(tags),
        index=int(index) if _INDEX.fullmatch(index := tags.get(labels.INDEX, "")) else 0,
        leader=tags.get(labels.LEADER) == "true" and role_of(tags) != SIDECAR,
        ip=next((address for address in addresses if address), ""),
        gpus=reserved_gpus(attributes),
        state=state["Status"],
        exit_code=None if alive else state["ExitCode"],
        restarts=attributes["RestartCount"],
        oom=state["OOMKilled"],
        created=seconds_of(attributes["Created"]),
        started=seconds_of(state["StartedAt"]),
        finished=seconds_of(state["FinishedAt"]),
        output=next(iter(outputs), ""),
        attached=bool(addresses),
        secrets=secrets_of(attributes),
        user=user_of(attributes),
    )


def user_of(attributes: Mapping[str, Any]) -> str:
    """Returns the `uid:gid` of a task, or of a sidecar's first process; "" if unknown.

    A task's container can start as root, and then become the named user, or the owner of the output
    directory.
    """
    pairs = (text.partition("=")[::2] for text in attributes["Config"].get("Env") or ())
    becomes = next((value for name, value in pairs if name == "CLUSTER_KIT_USER"), "")
    starts_as = str(attributes["Config"].get("User") or "")
    if not becomes or starts_as.partition(":")[0] not in ("", "0", "root"):
        return starts_as
    if becomes != OWNER:
        return becomes
    output = next(
        (m["Source"] for m in attributes.get("Mounts") or () if m["Destination"] == OUTPUT), ""
    )
    try:
        owner = os.stat(output, follow_symlinks=False)  # noqa: PTH116 - the engine's own path
    except OSError:  # of another machine
        return starts_as
    return f"{owner.st_uid}:{owner.st_gid}"


def secrets_of(attributes: Mapping[str, Any]) -> tuple[str, ...]:
    """The values of a container's secrets: files, options and variables that look secret, variables
    of the caller, and passwords in addresses."""
    named = (attributes["Config"].get("Labels") or {}).get(labels.SECRETS, "").split(",")
    config = attributes["Config"]
    variables = config.get("Env") or ()
    words = [*(config.get("Entrypoint") or ()), *(config.get("Cmd") or ())]
    pairs = (text.partition("=")[::2] for text in variables)
    values = {value for name, value in pairs if value and (looks_secret(name) or name in named)}
    values |= option_values(words)
    values |= {password for text in (*variables, *words) for password in masked_in(text)}
    for mount in attributes.get("Mounts") or ():
        values |= secret_in(mount.get("Source") or "", mount.get("Destination") or "")
    return tuple(sorted(values))


def reserved_gpus(attributes: Mapping[str, Any]) -> tuple[str, ...]:
    """Ids of the GPUs that the engine reserved for a container."""
    requests = attributes["HostConfig"].get("DeviceRequests") or []
    return tuple(device for request in requests for device in request.get("DeviceIDs") or [])


ALL_GPUS = "all"
"""Stands for every GPU in `gpus_of`."""


def gpus_of(attributes: Mapping[str, Any]) -> tuple[str, ...]:
    """Ids of the GPUs that any container has, however it was started; ALL_GPUS for all of them.

    They come from `--gpus` or a device request, or from NVIDIA's runtime and its variable.
    """
    ids_of_gpus = list(reserved_gpus(attributes))
    for request in attributes["HostConfig"].get("DeviceRequests") or []:
        kinds = {kind for kinds in request.get("Capabilities") or [] for kind in kinds}
        count = request.get("Count", 0)
        if kinds & {"gpu", "nvidia"} or request.get("Driver") == "nvidia":
            ids_of_gpus += [ALL_GPUS] if count == -1 else map(str, range(count))
    if attributes["HostConfig"].get("Runtime") == "nvidia" and not ids_of_gpus:
        variables = attributes["Config"].get("Env") or []
        named = dict(text.partition("=")[::2] for text in variables)
        ids = named.get("NVIDIA_VISIBLE_DEVICES", "")
        ids_of_gpus += [id_ for id_ in ids.split(",") if id_ not in ("", "void", "none")]
    return tuple(ids_of_gpus)


def reserved_by_others(containers: Iterable[Mapping[str, Any]]) -> tuple[tuple[str, str], ...]:
    """(device id, name) of the GPUs of those containers that are not the kit's."""
    return tuple(
        (device, attributes["Name"].lstrip("/"))
        for attributes in containers
        if labels.CLUSTER not in (attributes["Config"].get("Labels") or {})
        for device in gpus_of(attributes)
    )


def event_of(message: Mapping[str, Any]) -> Event | None:
    """An event of the engine's stream; None if it is about a sidecar, or about a command inside a
    container."""
    action = str(message.get("Action", ""))
    if action.startswith("exec_"):
        return None
    attributes = message.get("Actor", {}).get("Attributes", {})
    if labels.SIDECAR in attributes:
        return None
    code = attributes.get("exitCode")
    return Event(
        time=message.get("timeNano", 0) / 1e9,
        action=action,
        task=f"{attributes.get(labels.ROLE)}-{attributes.get(labels.INDEX)}",
        exit_code=int(code) if code is not None else None,
    )


Filters = dict[str, str | list[str]]


def of_cluster(cluster: str, run: str = "") -> Filters:
    """The engine's filter for containers and networks of a cluster, or only of this run."""
    return {"label": [f"{labels.CLUSTER}={cluster}", *([f"{labels.RUN}={run}"] if run else [])]}


def sidecars_of(cluster: str, run: str = "") -> Filters:
    """The engine's filter for a cluster's sidecars: it inspects each container that it lists."""
    return {"label": [*of_cluster(cluster, run)["label"], labels.SIDECAR]}


def board_of(cluster: str, run: str = "") -> Filters:
    """The engine's filter for the TensorBoard that was started with the cluster."""
    return {"label": [f"{labels.BOARD_OF}={cluster}", *([f"{labels.RUN}={run}"] if run else [])]}


def of_a_swarm(attributes: Mapping[str, Any]) -> bool:
    """Whether a swarm runs the container, which may then only be ended or removed through its
    service."""
    return has_service((attributes.get("Config") or {}).get("Labels") or {})


def has_service(tags: Mapping[str, str]) -> bool:
    """Whether the labels are those of a container of a swarm's service."""
    return "com.docker.swarm.service.id" in tags
