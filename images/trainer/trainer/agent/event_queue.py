"""Waiting for the next event of a task: one queue for signals, the beacon, probes and children."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue

LONGEST_WAIT_S = 60.0
"""Maximum seconds of one wait: Python 3.8 waits by the machine's clock, which can be set."""


def next_event(events: SimpleQueue[object], until: float = float("inf")) -> object | None:
    """The next event, None when `until` (monotonic seconds) comes first."""
    while True:
        left = max(0.0, until - time.monotonic())
        try:
            return events.get(timeout=min(left, LONGEST_WAIT_S))
        except Empty:
            if time.monotonic() >= until:
                return None


def put_signals(
    events: SimpleQueue[object], event: Callable[[], object], *numbers: signal.Signals
) -> None:
    """From now on, put an event for each of these signals at once; call it in the main thread.

    A Python handler runs in the main thread. A signal that comes just before that thread waits, or
    that the kernel gives to another thread, does not end its wait. So a thread reads the numbers
    that the handler in C writes (`signal.set_wakeup_fd`).
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)

    def read() -> None:
        while number := os.read(reader, 1):
            if number[0] in numbers:
                events.put(event())

    threading.Thread(target=read, name="signals", daemon=True).start()
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in numbers:
        signal.signal(number, lambda *_: None)
