"""Simulated time, which passes only in `sleep`, and actions at certain times."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable

BEGAN = 1_750_000_000.0


class Clock:
    """Replaces `SystemClock`."""

    def __init__(self) -> None:
        self._now = BEGAN
        self.ahead = 0.0
        """The seconds by which the time of day was set; it continues from there."""
        self.booted = "this start"
        """What `boot` returns."""
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._number = itertools.count()
        self.on_sleep: Callable[[], None] = lambda: None
        self.settle: Callable[[], None] = lambda: None

    def time(self) -> float:
        return self._now + self.ahead

    def monotonic(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self.on_sleep()
        self.pass_by(seconds)
        self.settle()

    def boot(self) -> str:
        return self.booted

    def at(self, delay: float, action: Callable[[], None]) -> None:
        """Schedule an action this many seconds from now."""
        heapq.heappush(self._due, (self._now + delay, next(self._number), action))

    def pass_by(self, seconds: float) -> None:
        """Let time pass, and run each scheduled action at its time."""
        until = self._now + seconds
        while self._due and self._due[0][0] <= until:
            moment, _, action = heapq.heappop(self._due)
            self._now = max(self._now, moment)
            action()
        self._now = until
