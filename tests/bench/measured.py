"""The result of a measurement, and whether it meets its goal; it does not use Docker."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from statistics import median
from typing import Literal

Verdict = Literal["met", "missed", "undecided"]
SURE = 0.05
"""The chance that the median is outside of its interval."""


@dataclass(frozen=True)
class Bar:
    """The goal of a value: at most `limit`, or at least."""

    limit: float
    at_least: bool = False

    def met_by(self, value: float) -> bool:
        return value >= self.limit if self.at_least else value <= self.limit

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.limit:g}"


@dataclass(frozen=True)
class Measured:
    """Samples of the kit, each with the sample of the other way that was taken at the same time.

    `other` is empty if there is nothing to compare with; then the goal is for the samples.
    """

    key: str
    title: str
    unit: str
    bar: Bar | None
    """None if the figure has no goal."""
    kit: tuple[float, ...]
    other: tuple[float, ...] = ()
    other_way: str = "plain way"
    load: tuple[float, ...] = ()
    """The machine's load average at the beginning and at the end of this measurement."""

    @property
    def values(self) -> tuple[float, ...]:
        """The values that the goal is for: the ratio of each pair, or the samples."""
        if not self.other:
            return self.kit
        return tuple(kit / other for kit, other in zip(self.kit, self.other, strict=True))

    @property
    def value(self) -> float:
        return median(self.values)

    @property
    def met(self) -> bool:
        return self.bar is None or self.bar.met_by(self.value)

    @property
    def interval(self) -> tuple[float, float]:
        """Where the median is with 95 % certainty; with fewer than six values, their range."""
        ordered = sorted(self.values)
        outside = _outside(len(ordered))
        return ordered[outside], ordered[-1 - outside]

    @property
    def verdict(self) -> Verdict:
        """ "undecided" if the bar is inside the interval: the next run could say the opposite."""
        if self.bar is None:
            return "met"
        ends = {self.bar.met_by(end) for end in self.interval}
        if len(ends) == 2:
            return "undecided"
        return "met" if self.met else "missed"


def _outside(count: int) -> int:
    """The number of values below the interval, and above it: the sign test's.

    The median is below the first k values with the chance that at most k - 1 of `count` throws of a
    coin show heads.
    """
    chance, outside = 0.0, 0
    for heads in range(count // 2):
        chance += comb(count, heads) / 2**count
        if chance > SURE / 2:
            break
        outside = heads
    return outside


@dataclass(frozen=True)
class Skipped:
    """A measurement that this machine cannot take."""

    key: str
    title: str
    reason: str


Result = Measured | Skipped
