"""What this container has used so far: CPU and network."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from trainer.outcome import traffic

PROCESSES = Path("/proc")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Usage:
    """CPU time in seconds, and bytes received and sent."""

    cpu_s: float
    bytes: int


def used() -> Usage:
    """By this container since its start; traffic is 0 if the kernel does not tell."""
    return Usage(_cpu_s(), sum(traffic().values()))


def _cpu_s() -> float:
    """Of all processes of the container, and of those that have ended and were waited for.

    The files of control groups differ between hosts; those of processes do not.
    """
    ticks = 0
    for stat in PROCESSES.glob("[0-9]*/stat"):
        try:
            # After the name in brackets, which may hold anything: utime, stime, cutime, cstime.
            fields = stat.read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
        except (OSError, ValueError):
            continue  # it has ended by now
    return ticks / TICKS_PER_S
