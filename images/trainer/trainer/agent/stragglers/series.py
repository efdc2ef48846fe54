"""A value over time, and windows of it. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Generic, TypeVar

Value = TypeVar("Value")
PARTS = 4
"""What is said of a window holds in each of its parts: one long pause is nothing of the kind."""


class Series(Generic[Value]):
    """Values, each valid from its time (seconds) to the next one's; those too old are dropped."""

    def __init__(self, longest_s: float) -> None:
        self._longest_s = longest_s
        self._times: list[float] = []
        self._values: list[Value] = []

    def add(self, now: float, value: Value) -> None:
        """Note the value at `now`, which never goes back."""
        self._times.append(now)
        self._values.append(value)
        too_old = max(0, bisect_right(self._times, now - self._longest_s) - 1)
        del self._times[:too_old], self._values[:too_old]

    def at(self, moments: Sequence[float]) -> list[Value] | None:
        """The values at these times; None if the first one is before the series."""
        if not self._times or moments[0] < self._times[0]:
            return None
        return [self._values[bisect_right(self._times, moment) - 1] for moment in moments]


def parts(now: float, seconds: float) -> list[float]:
    """The borders of the PARTS of a window that ends `now`."""
    return [now - seconds + seconds * part / PARTS for part in range(PARTS + 1)]


def increases(values: Sequence[int]) -> list[int]:
    """From each value to the next."""
    return [later - before for before, later in zip(values, values[1:])]
