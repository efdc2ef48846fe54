"""Passes log lines of running tasks on as they come."""

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
    engine: Engine, containers: Iterable[Container], line: Line, since: float | None = None
) -> list[threading.Thread]:
    """Start one thread per container, which calls `line(task, text)` until the container ends.

    Args:
        since: Unix time; older lines are left out.
    """
    threads = [
        threading.Thread(target=_follow, args=(engine, container, line, since), daemon=True)
        for container in containers
    ]
    for thread in threads:
        thread.start()
    return threads


def _follow(engine: Engine, container: Container, line: Line, since: float | None) -> None:
    """Pass lines on until the container has ended for good; the engine's stream ends at restarts.

    If the engine is lost, it ends without an error: the watch of the run reports that.
    """
    with contextlib.suppress(EngineError):
        while True:
            for text in engine.follow(container.id, since):
                if text.strip():
                    line(container.name, text.rstrip("\r"))
            since = time.time()
            if not engine.comes_back(container.id, RESTART_S):
                return
