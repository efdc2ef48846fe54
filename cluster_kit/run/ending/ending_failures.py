"""What may go wrong while a run is ended, without keeping it from being saved and removed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import TracebackType

from cluster_kit.errors import EngineError
from cluster_kit.platforms.docker.docker_errors import START_AGAIN
from cluster_kit.platforms.engine import Engine


class Failures:
    """Suppresses EngineError and OSError of its `with` blocks, and keeps the first one."""

    def __init__(self) -> None:
        self.first: EngineError | OSError | None = None

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> bool:
        if not isinstance(error, EngineError | OSError):
            return False
        self.first = self.first or error
        return True


@contextlib.contextmanager
def answering(engine: Engine) -> Iterator[None]:
    """Raise EngineError if the engine does not answer; a call of one that hangs takes minutes."""
    if not engine.answers():
        raise EngineError(
            "the Docker engine does not answer",
            START_AGAIN,
        )
    yield
