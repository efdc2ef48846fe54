"""Where the engine is: DOCKER_HOST, or the context that `docker` uses, which the SDK ignores."""

from __future__ import annotations

import os
from typing import Any

import docker
from docker.context import ContextAPI
from docker.errors import DockerException


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
    return docker.from_env(environment=environment, **options)
