"""Hands the leader's and the evaluator's log lines to the view, while they run."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable

from cluster_kit.engine.containers import Container
from cluster_kit.engine.interface import Engine
from cluster_kit.errors import EngineError

RESTART_S = 3.0
"""An engine restarts a crashed container within a second."""

Line = Callable[[str, str], None]


def follow_logs(
    engine: Engine, containers: Iterable[Container], line: Line
) -> list[threading.Thread]:
    """One thread a container; each ends with its container."""
    threads = [
        threading.Thread(target=_follow, args=(engine, container, line), daemon=True)
        for container in containers
    ]
    for thread in threads:
        thread.start()
    return threads


def _follow(engine: Engine, container: Container, line: Line) -> None:
    """Until the container has ended for good: a stream of the engine's ends at every restart.

    An engine that is lost ends it quietly: whoever watches the run says so.
    """
    since: float | None = None
    with contextlib.suppress(EngineError):
        while True:
            for text in engine.follow(container.id, since):
                if text.strip():
                    line(container.name, text.rstrip("\r"))
            since = time.time()
            if not engine.comes_back(container.id, RESTART_S):
                return
