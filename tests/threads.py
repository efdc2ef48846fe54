"""Checks that the threads that a test starts end with it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

WITHIN_S = 20.0
"""An upper bound: the threads end by themselves, only later on a busy machine."""


@contextmanager
def ended(within_s: float = WITHIN_S) -> Iterator[None]:
    """Wait for the threads that the block has started; AssertionError if one continues.

    Such a thread could print into the captured output of a later test, or connect to its port.
    """
    before = set(threading.enumerate())
    yield
    until = time.monotonic() + within_s
    started = set(threading.enumerate()) - before
    for thread in started:
        thread.join(max(0.0, until - time.monotonic()))
    alive = sorted(thread.name for thread in started if thread.is_alive())
    assert not alive, f"{', '.join(alive)}: goes on after its test; end it there"
