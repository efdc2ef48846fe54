"""The docker SDK's failures become the kit's: one place, so that no traceback reaches a person."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import urllib3
from docker.errors import APIError, DockerException

from cluster_kit.errors import EngineError

_LOST = (DockerException, urllib3.exceptions.HTTPError, OSError)
"""What the SDK and the libraries below it raise if the connection breaks; `requests` raises
OSErrors."""


@contextlib.contextmanager
def as_engine_errors() -> Iterator[None]:
    """Raises EngineError, in the engine's own words, where the SDK raises anything."""
    try:
        yield
    except APIError as error:
        raise EngineError(
            f"the Docker engine refused: {error.explanation or first_line(error)}",
            "change what it names, and run it again",
        ) from None
    except _LOST as error:
        raise EngineError(
            f"the Docker engine does not answer: {first_line(error)}",
            "start it (`make engine`); `cluster-kit status` then shows what is still up, and "
            "`cluster-kit down NAME` removes it",
        ) from None


def first_line(error: Exception) -> str:
    """The error's first line, or its type's name where it says nothing."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
