"""Seconds between two processes of one machine, by a clock that nobody sets; how long, in words."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")


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

    @property
    def seconds(self) -> float:
        """Seconds since then; by the time of day if the machine was started again meanwhile."""
        if self.boot and self.boot == _boot():
            return time.monotonic() - self.ticks
        return max(0.0, time.time() - self.unix)


def moment(ago_s: float = 0.0) -> Moment:
    """The moment so many seconds ago."""
    return Moment(time.time() - ago_s, time.monotonic() - ago_s, _boot())


def _boot() -> str:
    """What this start of the machine is called, "" if it has no name."""
    try:
        return _BOOT.read_text(encoding="ascii").strip()
    except OSError:
        return ""
