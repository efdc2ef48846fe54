"""Errors of the Docker engine as the kit's own, each with what to do."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import urllib3
from docker.errors import APIError, DockerException

from cluster_kit.errors import EngineError, HostError
from cluster_kit.util.paths import command

_LOST = (DockerException, urllib3.exceptions.HTTPError, OSError)
"""What the SDK and its libraries raise if the connection breaks; `requests` raises OSErrors."""


START_IT = f"start it (`{command('engine')}`)"
"""The hint if no engine answers."""
START_AGAIN = (
    f"{START_IT}; `cluster-kit status` then shows what is still up, and "
    "`cluster-kit down NAME` removes it"
)
_NO_SPACE = ("no space left on device", "disk quota exceeded")


def disk_hint(words: str) -> str:
    """The hint if these words of the engine say that its own disk is full, else ""."""
    if not any(sign in words.lower() for sign in _NO_SPACE):
        return ""
    return (
        "the disk of the Docker engine is full: `docker system df` shows what takes the room, "
        "`docker system prune` frees what nobody uses (`docker builder prune` only the builds' "
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
            disk_hint(words) or "change what it names, and run it again",
        ) from None
    except _LOST as error:
        raise EngineError(
            f"the Docker engine does not answer: {first_line(error)}",
            START_AGAIN,
        ) from None


def may_not(words: str) -> bool:
    """Whether these words of the SDK, or of `docker`, say that this user may not use the engine."""
    return "permission denied" in words.lower()


def no_engine(error: Exception) -> HostError:
    """What to say if no connection to an engine can be made."""
    if may_not(str(error)):
        socket = os.environ.get("DOCKER_HOST") or "/var/run/docker.sock"
        return HostError(
            f"this user may not use the Docker engine: permission denied on {socket}",
            "join the group that may: `sudo usermod -aG docker $USER`, then log in again (or "
            f"`newgrp docker`); `{command('engine')}` would not help",
        )
    return HostError(
        f"no Docker engine answers: {first_line(error)}",
        f"run `{command('engine')}` (it installs or starts one if it can)",
    )


def first_line(error: Exception) -> str:
    """The first line of an error's message, or the name of its type if it has none."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
