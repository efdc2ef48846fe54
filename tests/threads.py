"""Threads that a test starts end with it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

WITHIN_S = 20.0
"""An upper bound: they end by themselves, and only on a busy machine a moment later."""


@contextmanager
def ended(within_s: float = WITHIN_S) -> Iterator[None]:
    """Wait for the threads that the block has started; AssertionError if one goes on.

    It would print into what a later test captures, or connect to its port.
    """
    before = set(threading.enumerate())
    yield
    until = time.monotonic() + within_s
    started = set(threading.enumerate()) - before
    for thread in started:
        thread.join(max(0.0, until - time.monotonic()))
    alive = sorted(thread.name for thread in started if thread.is_alive())
    assert not alive, f"{', '.join(alive)}: goes on after its test; end it there"
