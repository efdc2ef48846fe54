"""Lists the kit's containers without the Docker SDK, whose import takes longer than Tab may."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from cluster_kit import labels
from cluster_kit.platforms.engine import SIDECAR, ContainerSummary
from cluster_kit.resolved import OUTPUT

_SOCKET = "/var/run/docker.sock"
_WITHIN_S = 60.0


def glance() -> list[ContainerSummary] | None:
    """What `glance` of the Docker engine returns; None if only the SDK can tell: the engine is not
    on a socket of this machine, a context of `docker` may say where it is, or it refuses."""
    path = _socket_path()
    if path is None:
        return None
    filters = quote(json.dumps({"label": [labels.CLUSTER]}))
    request = f"GET /containers/json?all=1&filters={filters} HTTP/1.0\r\nHost: docker\r\n\r\n"
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_WITHIN_S)
            connection.connect(path)
            connection.sendall(request.encode())
            with connection.makefile("rb") as answer:  # by HTTP/1.0 it ends with the connection
                head, _, body = answer.read().partition(b"\r\n\r\n")
        if head.split(b" ", 2)[1] != b"200":
            return None
        return [summary_of(container) for container in json.loads(body)]
    except (OSError, ValueError, LookupError):
        return None


def _socket_path() -> str | None:
    """The path of the engine's socket; None if it is not certain."""
    address = os.environ.get("DOCKER_HOST", "")
    if address:
        return address.removeprefix("unix://") if address.startswith("unix:///") else None
    if os.environ.get("DOCKER_CONTEXT", "default") != "default":
        return None
    folder = os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker"
    try:
        settings = json.loads(Path(folder, "config.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return _SOCKET
    except (OSError, ValueError):
        return None
    return _SOCKET if settings.get("currentContext", "default") == "default" else None


def summary_of(listed: Mapping[str, Any]) -> ContainerSummary:
    """A container with the kit's labels, from a line of `docker ps`."""
    tags = listed["Labels"]
    outputs = [m["Source"] for m in listed.get("Mounts") or () if m.get("Destination") == OUTPUT]
    return ContainerSummary(
        id=listed["Id"],
        cluster=tags[labels.CLUSTER],
        run=tags.get(labels.RUN, ""),
        name=tags.get(labels.SIDECAR) or f"{tags.get(labels.ROLE)}-{tags.get(labels.INDEX)}",
        role=role_of(tags),
        state=str(listed.get("State", "")),
        output=next(iter(outputs), ""),
    )


def role_of(tags: Mapping[str, str]) -> str:
    """A task's role; SIDECAR for a sidecar, whatever labels its image has."""
    return SIDECAR if labels.SIDECAR in tags else tags.get(labels.ROLE, SIDECAR)
