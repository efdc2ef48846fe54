"""Hands the leader's and the evaluator's log lines to the view, while they run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from cluster_kit.engine import Container, Engine

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
    for text in engine.follow(container.id):
        if text.strip():
            line(container.name, text.rstrip("\r"))
