"""What a clock is, moments that another process can read, and durations in words. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class Clock(Protocol):
    """Tells the time, and waits. Tests pass one whose time goes on only when somebody sleeps."""

    def time(self) -> float:
        """Unix seconds: the time of day, which somebody may set."""
        ...

    def monotonic(self) -> float:
        """Seconds since some moment, by a clock that nobody can set."""
        ...

    def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""
        ...

    def boot(self) -> str:
        """A name of this start of the machine, which `monotonic` counts from; "" if it has none."""
        ...


def duration(seconds: float, digits: int = 1) -> str:
    """A length of time in words: `16.5 s`, and from 100 s on `2 min 5 s`, `1 h 12 min`.

    Args:
        digits: after the point, below 100 s.
    """
    if round(seconds, digits) < 100:
        return f"{seconds:.{digits}f} s"
    whole = round(seconds)
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {whole % 60} s"


@dataclass(frozen=True)
class Moment:
    """Now, for another process: `unix` is the time of day, `ticks` a clock that began at `boot`."""

    unix: float
    ticks: float
    boot: str

    def seconds(self, clock: Clock) -> float:
        """Seconds since then; by the time of day if the machine was started again meanwhile."""
        if self.boot and self.boot == clock.boot():
            return clock.monotonic() - self.ticks
        return max(0.0, clock.time() - self.unix)


def moment(clock: Clock, ago_s: float = 0.0) -> Moment:
    """The moment so many seconds ago."""
    return Moment(clock.time() - ago_s, clock.monotonic() - ago_s, clock.boot())
