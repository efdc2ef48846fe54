"""Waiting for the next event of a task: one queue for signals, the beacon, probes and children."""

from __future__ import annotations

import time
from queue import Empty, SimpleQueue

SIGNALS_SEEN_S = 0.3
"""Maximum seconds of one wait, since a signal just before a wait does not interrupt it."""


def next_event(events: SimpleQueue[object], until: float = float("inf")) -> object | None:
    """The next event, None when `until` (monotonic seconds) comes first."""
    while True:
        left = max(0.0, until - time.monotonic())
        try:
            return events.get(timeout=min(left, SIGNALS_SEEN_S))
        except Empty:
            if left <= SIGNALS_SEEN_S:
                return None
