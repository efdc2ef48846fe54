"""An engine that is away in the middle of a run: it is told, and waited for."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import TracebackType

from cluster_kit.errors import EngineError
from cluster_kit.platforms.docker.docker_errors import START_IT
from cluster_kit.run.watching.ended_by_engine import EndedByEngine
from cluster_kit.util.clock import Clock

DOCKER = "the Docker engine"


class Absence:
    """Suppresses EngineErrors of its `with` blocks while the engine may be away.

    A block without an error ends the absence. Containers live on without their engine.

    Args:
        clock: what the absence is measured by.
        limit_s: for how long the engine may be away, in seconds.
        tell: is called when the engine goes, and when it is back.
        back: is called when it is back.
        title: what it is called.
    """

    def __init__(
        self,
        clock: Clock,
        limit_s: float,
        tell: Callable[[str], None],
        back: Callable[[], None],
        title: str = DOCKER,
    ) -> None:
        self._clock = clock
        self._title = title
        self._limit_s = limit_s
        self._tell = tell
        self._back = back
        self._away_since: float | None = None
        self._before_s = 0.0
        self.lost_at = math.inf
        """Unix time at which the engine was last found to be away."""

    @property
    def lasts(self) -> bool:
        """Whether the engine is away now."""
        return self._away_since is not None

    @property
    def total_s(self) -> float:
        """For how many seconds it has been away so far, all absences together."""
        now = 0.0 if self._away_since is None else self._clock.monotonic() - self._away_since
        return self._before_s + now

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> bool:
        if isinstance(error, EngineError) and not isinstance(error, EndedByEngine):
            self._bear(error)
            return True
        if error is None and self._away_since is not None:
            self._end()
        return False

    def _bear(self, error: EngineError) -> None:
        """Note that the engine is away; raises EngineError if it has been for too long."""
        if self._away_since is None:
            self._away_since, self.lost_at = self._clock.monotonic(), self._clock.time()
            self._tell(
                f"{self._title} does not answer; the containers go on without it, and it is "
                f"waited for, up to {self._limit_s:g} s"
            )
        if self._clock.monotonic() - self._away_since >= self._limit_s:
            raise _given_up(error, self._limit_s, self._title) from None

    def _end(self) -> None:
        away_s = self.total_s - self._before_s
        self._before_s, self._away_since = self.total_s, None
        self._tell(f"{self._title} answers again, after {away_s:.0f} s: the run is watched on")
        self._back()


def _given_up(error: EngineError, limit_s: float, title: str) -> EngineError:
    return EngineError(
        f"{title} stopped in the middle of the run, and did not come back within "
        f"{limit_s:g} s: {error.message}",
        f"{START_IT if title == DOCKER else error.hint}; `cluster-kit attach NAME` then goes on "
        "with what is still up, and `cluster-kit down NAME` removes it",
    )
