"""Ends a cluster from outside, and leaves its evidence to whoever watches it."""

from __future__ import annotations

import time

from cluster_kit.engine.interface import Engine
from cluster_kit.run.claim import is_claimed

SAVES_S = 15.0
"""Whoever watches the cluster has this long to judge it, and to save its logs."""
POLL_S = 0.2


def take_down(engine: Engine, name: str) -> int:
    """Stop and remove a cluster; the number of its containers.

    Raises:
        EngineError: the engine cannot, or does not answer.
    """
    count = len(engine.containers(name))
    if is_claimed(engine, name):
        engine.stop(name)
        until = time.monotonic() + SAVES_S
        while time.monotonic() < until and is_claimed(engine, name):
            time.sleep(POLL_S)
    engine.remove(name)
    return count
