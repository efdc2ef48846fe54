"""Passes log lines of running tasks on as they come."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from cluster_kit.errors import EngineError
from cluster_kit.observe.log_throttle import Line, Shown
from cluster_kit.platforms.engine import Engine
from cluster_kit.util.clock import Clock

RESTART_S = 3.0
"""An engine restarts a crashed container within a second."""
Take = Callable[[int, str], None]
"""Takes a line of a log: its number from 1 on, the line."""


class Speaker(Protocol):
    """A container, as far as its log goes."""

    @property
    def id(self) -> str: ...

    @property
    def name(self) -> str: ...


def follow_logs(
    engine: Engine, containers: Iterable[Speaker], line: Line, *, times: bool = False
) -> list[threading.Thread]:
    """Start one thread per container, which calls `line(task, text)` until the container ends.

    Args:
        times: put the engine's time and a blank before each line.
    """
    return [_start(engine, c, None, _each_once(c.name, line), times=times) for c in containers]


class Followed:
    """What a run shows of its tasks' logs: each line once, and a count of those left out."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._shown: dict[str, Shown] = {}

    def follow(
        self, engine: Engine, containers: Iterable[Speaker], line: Line, since: float | None
    ) -> None:
        """Show the lines of these containers, each in a thread of its own, also a second time.

        Args:
            since: Unix time; older lines are left out. Only the first time counts.
        """
        for container in containers:
            shown = self._shown.setdefault(
                container.name, Shown(self._clock, container.name, line, since)
            )
            _start(engine, container, shown.since, shown.take)

    def settle(self) -> None:
        """Show what has been held back long enough."""
        for shown in self._shown.values():
            shown.settle()

    def finish(self, logs: Mapping[str, Iterable[str]], said: str = "") -> None:
        """Show or count the rest of the tasks' logs; nothing is shown after that.

        Args:
            logs: the lines of each task's whole log, with their times.
            said: what the outcome tells of an error, which is not to be shown twice.
        """
        for name, shown in self._shown.items():
            shown.finish(logs.get(name, ()), said)


def _start(
    engine: Engine, container: Speaker, since: float | None, take: Take, *, times: bool = False
) -> threading.Thread:
    arguments = (engine, container, since, take, times)
    thread = threading.Thread(target=_follow, args=arguments, daemon=True)
    thread.start()
    return thread


def _follow(
    engine: Engine, container: Speaker, since: float | None, take: Take, times: bool
) -> None:
    """Pass lines on until the container has ended for good.

    The engine's stream ends at a restart, and the next one begins with the first line again. If the
    engine is lost, it ends without an error: the watch of the run reports that.
    """
    with contextlib.suppress(EngineError):
        while True:
            for number, text in enumerate(engine.follow(container.id, since, times=times), 1):
                take(number, text.rstrip("\r"))
            if not engine.comes_back(container.id, RESTART_S):
                return


def _each_once(task: str, line: Line) -> Take:
    """Passes each line on that is not blank, and has not come before."""
    read = 0

    def take(number: int, text: str) -> None:
        nonlocal read
        if number > read:
            read = number
            if text.strip():
                line(task, text)

    return take
