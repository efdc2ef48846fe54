"""What a measurement found, and whether that meets its bar. No Docker here."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Bar:
    """What the value must reach: at most `limit`, or at least."""

    limit: float
    at_least: bool = False

    def met_by(self, value: float) -> bool:
        return value >= self.limit if self.at_least else value <= self.limit

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.limit:g}"


@dataclass(frozen=True)
class Measured:
    """Samples of the kit, each beside the sample of the other way that was taken next to it.

    `other` is empty where there is nothing to compare with: then the bar is for the samples.
    """

    key: str
    title: str
    unit: str
    bar: Bar | None
    """None where the figure is shown for what it is."""
    kit: tuple[float, ...]
    other: tuple[float, ...] = ()
    other_way: str = "plain way"
    load: tuple[float, ...] = ()
    """The machine's load average when this measurement began, and when it ended."""

    @property
    def values(self) -> tuple[float, ...]:
        """What the bar is for: the ratio of each pair, or the samples themselves."""
        if not self.other:
            return self.kit
        return tuple(kit / other for kit, other in zip(self.kit, self.other, strict=True))

    @property
    def value(self) -> float:
        return median(self.values)

    @property
    def met(self) -> bool:
        return self.bar is None or self.bar.met_by(self.value)


@dataclass(frozen=True)
class Skipped:
    """A measurement that this machine cannot take."""

    key: str
    title: str
    reason: str


Result = Measured | Skipped
