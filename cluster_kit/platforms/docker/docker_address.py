"""Where the Docker engine is, and of what kind: rootless, remote, in a virtual machine."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

import docker
from docker.context import ContextAPI
from docker.errors import DockerException

from cluster_kit.facts import EngineKind
from cluster_kit.util import debug_log

_LOG = logging.getLogger("cluster_kit.docker")


def address() -> str:
    """The engine's address, "" for the usual one of this machine."""
    if named := os.environ.get("DOCKER_HOST"):
        return named
    try:
        chosen = os.environ.get("DOCKER_CONTEXT") or ContextAPI.get_current_context().name
        context = ContextAPI.get_context(chosen) if chosen != "default" else None
    except (DockerException, OSError, ValueError, AttributeError):
        return ""  # `docker` itself says what is wrong with its contexts
    return str(context.Host or "") if context is not None else ""


def sdk(**options: Any) -> docker.DockerClient:
    """The SDK's client of the engine that `docker` would use; raises DockerException."""
    found = address()
    environment = {**os.environ, "DOCKER_HOST": found} if found else dict(os.environ)
    client = docker.from_env(environment=environment, **options)
    client.api.send = _logged(client.api.send)
    return client


def _logged(send: Callable[..., Any]) -> Callable[..., Any]:
    """What sends a request, with a line in the debug log for each: path, status, time."""

    def logged(request: Any, **options: Any) -> Any:
        with debug_log.timed(_LOG, f"{request.method} {unquote(request.path_url)}") as result:
            answer = send(request, **options)
            result(answer.status_code)
            return answer

    return logged


LIMITS = {"cpus": "CpuCfsQuota", "memory": "MemoryLimit"}
"""A limit of a task, and where the engine tells whether it can hold it."""
ROOT = "0:0"
_LOOPBACK = ("localhost", "127.0.0.1", "::1", "")


def engine_kind(info: Mapping[str, Any], address: str) -> EngineKind:
    """The kind of an engine, from `docker info` and the address that it was reached by."""
    options = [str(option).split(",") for option in info.get("SecurityOptions") or ()]
    return EngineKind(
        rootless=["name=rootless"] in options or info.get("Rootless") is True,
        remote=_remote(address),
        desktop="Docker Desktop" in str(info.get("OperatingSystem", "")),
        unlimited=tuple(limit for limit, key in LIMITS.items() if info.get(key) is False),
        machine=str(info.get("Architecture", "")),
        podman="BuildahVersion" in info,  # what builds there; no Docker engine has it
    )


def caller(kind: EngineKind) -> str:
    """`uid:gid` that is the caller in a container: what tasks write has to be the caller's.

    A rootless engine maps its own user to root, and every other number to a subordinate one.
    """
    return ROOT if kind.rootless else f"{os.getuid()}:{os.getgid()}"


def _remote(address: str) -> str:
    """The address without a user's name, if it is that of another machine, else ""."""
    found = urlsplit(address)
    if found.scheme not in ("ssh", "tcp", "http", "https"):
        return ""
    if found.scheme != "ssh" and (found.hostname or "") in _LOOPBACK:
        return ""
    return f"{found.scheme}://{found.hostname}"
