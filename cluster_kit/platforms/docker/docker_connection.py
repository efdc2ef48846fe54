"""Finds the Docker engine and its kind, and translates its errors into EngineError."""

from __future__ import annotations

import contextlib
import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

import docker
import urllib3
from docker.context import ContextAPI
from docker.errors import APIError, DockerException

from cluster_kit.errors import EngineError, HostError
from cluster_kit.facts import EngineKind
from cluster_kit.util import debug_log
from cluster_kit.util.paths import command

_LOG = logging.getLogger("cluster_kit.docker")


def address() -> str:
    """The engine's address; "" for this machine's default."""
    if named := os.environ.get("DOCKER_HOST"):
        return named
    try:
        chosen = os.environ.get("DOCKER_CONTEXT") or ContextAPI.get_current_context().name
        context = ContextAPI.get_context(chosen) if chosen != "default" else None
    except (DockerException, OSError, ValueError, AttributeError):
        return ""  # `docker` itself reports what is wrong with its contexts
    return str(context.Host or "") if context is not None else ""


def sdk(**options: Any) -> docker.DockerClient:
    """An SDK client for the engine that `docker` would use; raises DockerException."""
    socket = address()
    environment = {**os.environ, "DOCKER_HOST": socket} if socket else dict(os.environ)
    client = docker.from_env(environment=environment, **options)
    client.api.send = _logged(client.api.send)
    if str(client.api.base_url).startswith("http+docker://"):
        # A local socket has no proxy: looking for one takes half of each request's time.
        client.api.trust_env = False
    return client


def _logged(send: Callable[..., Any]) -> Callable[..., Any]:
    """The function that sends a request; it also logs path, status and time for debugging."""

    def logged(request: Any, **options: Any) -> Any:
        with debug_log.timed(_LOG, f"{request.method} {unquote(request.path_url)}") as result:
            answer = send(request, **options)
            result(answer.status_code)
            return answer

    return logged


LIMITS = {"cpus": "CpuCfsQuota", "memory": "MemoryLimit"}
"""The key of `docker info` that says whether the engine can enforce a task's limit."""
ROOT = "0:0"
_LOOPBACK = ("localhost", "127.0.0.1", "::1", "")


def engine_kind(info: Mapping[str, Any], address: str, mounts: str = "") -> EngineKind:
    """The kind of an engine, from `docker info` and the engine's address.

    Args:
        mounts: the mounts of this process, as /proc/self/mountinfo has them.
    """
    options = [str(option).split(",") for option in info.get("SecurityOptions") or ()]
    return EngineKind(
        rootless=["name=rootless"] in options or info.get("Rootless") is True,
        remote=_remote(address),
        outside=any(map(_SOCKET.fullmatch, mount_points(mounts))),
        desktop="Docker Desktop" in str(info.get("OperatingSystem", "")),
        unlimited=tuple(limit for limit, key in LIMITS.items() if info.get(key) is False),
        machine=str(info.get("Architecture", "")),
        podman="BuildahVersion" in info,  # Podman's builder; no Docker engine has it
    )


def caller(kind: EngineKind) -> str:
    """The `uid:gid` in a container that makes the caller the owner of the files that tasks write.

    A rootless engine maps its user to root, and every other id to a subordinate one.
    """
    return ROOT if kind.rootless else f"{os.getuid()}:{os.getgid()}"


_SOCKET = re.compile(r"/.*(?:docker|podman)[^/]*\.sock")
"""The socket of an engine; a container that uses the engine outside has it as a mount."""


def mount_points(mounts: str) -> Iterator[str]:
    """The mount points in a text such as /proc/self/mountinfo, see proc_pid_mountinfo(5)."""
    return (fields[4] for line in mounts.splitlines() if len(fields := line.split(" ")) > 4)


def _remote(address: str) -> str:
    """The address without the user name if it is another machine's, else ""."""
    parts = urlsplit(address)
    if parts.scheme not in ("ssh", "tcp", "http", "https"):
        return ""
    if parts.scheme != "ssh" and (parts.hostname or "") in _LOOPBACK:
        return ""
    return f"{parts.scheme}://{parts.hostname}"


_LOST = (DockerException, urllib3.exceptions.HTTPError, OSError)
"""Exceptions of the SDK and its libraries for a broken connection (`requests` raises OSErrors)."""


START_IT = f"start it (`{command('engine')}`)"
"""The hint if no engine answers."""
START_AGAIN = (
    f"{START_IT}; `cluster-kit status` then shows what is still up, and "
    "`cluster-kit down NAME` removes it"
)
_NO_SPACE = ("no space left on device", "disk quota exceeded")


def disk_hint(words: str) -> str:
    """The hint if the engine's message says that its disk is full, else ""."""
    if not any(sign in words.lower() for sign in _NO_SPACE):
        return ""
    return (
        "the disk of the Docker engine is full: `docker system df` shows what uses the space, "
        "`docker system prune` removes what is unused (`docker builder prune` only the builds' "
        "cache)"
    )


@contextlib.contextmanager
def as_engine_errors() -> Iterator[None]:
    """Raises EngineError with the engine's message if the SDK raises in the block."""
    try:
        yield
    except APIError as error:
        words = str(error.explanation or first_line(error))
        raise EngineError(
            f"the Docker engine refused: {words}",
            disk_hint(words) or "change what the message names, and run the command again",
        ) from None
    except _LOST as error:
        raise EngineError(
            f"the Docker engine does not answer: {first_line(error)}",
            START_AGAIN,
        ) from None


def may_not(words: str) -> bool:
    """Whether a message of the SDK or `docker` says that this user has no access to the engine."""
    return "permission denied" in words.lower()


def no_engine(error: Exception) -> HostError:
    """The error if the kit cannot connect to an engine."""
    if may_not(str(error)):
        socket = os.environ.get("DOCKER_HOST") or "/var/run/docker.sock"
        return HostError(
            f"this user has no access to the Docker engine: permission denied on {socket}",
            "add the user to the group that has access: `sudo usermod -aG docker $USER`, then log "
            "in again (or "
            f"`newgrp docker`); `{command('engine')}` would not help",
        )
    return HostError(
        f"no Docker engine answers: {first_line(error)}",
        f"run `{command('engine')}` (it installs or starts one if it can)",
    )


def first_line(error: Exception) -> str:
    """The first line of an error's message, or the name of its type if it has none."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
