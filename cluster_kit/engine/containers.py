"""The engine's records of containers and events, as values. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cluster_kit import labels
from cluster_kit.cluster import OUTPUT


@dataclass(frozen=True)
class Container:
    """A task's container as the engine reports it.

    `exit_code` is None while it runs and before it has started; if the engine is about to restart
    it, that of its last end. `created`, `started` and `finished` are Unix seconds: the last start
    and the last end, negative if there was none. `output` is the host's directory mounted at
    /output. `attached`: it has a network.
    """

    id: str
    cluster: str
    name: str
    role: str
    index: int
    leader: bool
    ip: str
    gpus: tuple[str, ...]
    state: str
    exit_code: int | None
    restarts: int
    oom: bool
    created: float
    started: float
    finished: float
    output: str
    attached: bool = True


@dataclass(frozen=True)
class Event:
    """An event of a task's container: `start`, `die`, `oom`, `kill`, …; `time` in Unix seconds."""

    time: float
    action: str
    task: str
    exit_code: int | None


def container_of(attributes: Mapping[str, Any]) -> Container:
    """A container with the kit's labels, from the attributes that `docker inspect` shows."""
    state, tags = attributes["State"], attributes["Config"]["Labels"]
    networks = attributes["NetworkSettings"]["Networks"].values()
    addresses = [(n.get("IPAMConfig") or {}).get("IPv4Address") for n in networks]
    restarting = state["Status"] == "restarting"  # the engine reports such a one as running, too
    alive = (state["Running"] and not restarting) or state["Status"] == "created"
    outputs = [m["Source"] for m in attributes["Mounts"] if m["Destination"] == OUTPUT]
    return Container(
        id=attributes["Id"],
        cluster=tags[labels.CLUSTER],
        name=f"{tags[labels.ROLE]}-{tags[labels.INDEX]}",
        role=tags[labels.ROLE],
        index=int(tags[labels.INDEX]),
        leader=tags.get(labels.LEADER) == "true",
        ip=next((address for address in addresses if address), ""),
        gpus=reserved_gpus(attributes),
        state=state["Status"],
        exit_code=None if alive else state["ExitCode"],
        restarts=attributes["RestartCount"],
        oom=state["OOMKilled"],
        created=_seconds(attributes["Created"]),
        started=_seconds(state["StartedAt"]),
        finished=_seconds(state["FinishedAt"]),
        output=next(iter(outputs), ""),
        attached=bool(addresses),
    )


def _seconds(time: str) -> float:
    """Unix seconds of the engine's RFC 3339 time; year 1 means never."""
    return datetime.fromisoformat(time).timestamp()


def reserved_gpus(attributes: Mapping[str, Any]) -> tuple[str, ...]:
    """Ids of the GPUs that the engine reserved for a container."""
    requests = attributes["HostConfig"].get("DeviceRequests") or []
    return tuple(device for request in requests for device in request.get("DeviceIDs") or [])


def event_of(message: Mapping[str, Any]) -> Event | None:
    """The event of a message of the engine's stream; None if it is a command run in a container."""
    action = str(message.get("Action", ""))
    if action.startswith("exec_"):
        return None
    attributes = message.get("Actor", {}).get("Attributes", {})
    code = attributes.get("exitCode")
    return Event(
        time=message.get("timeNano", 0) / 1e9,
        action=action,
        task=f"{attributes.get(labels.ROLE)}-{attributes.get(labels.INDEX)}",
        exit_code=int(code) if code is not None else None,
    )
