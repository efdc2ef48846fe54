"""What a task's own limits do to it. Pure.

The cause of a slow task; and in training that waits for its slowest task, all that shows who it is.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from trainer.agent.usage import Usage
from trainer.contract.times import STRAGGLER_FACTOR

CPU, BANDWIDTH, MEMORY, UNKNOWN = "cpu-limit", "bandwidth-limit", "memory", "unknown"
"""Causes."""
HELD_UP = 1.5
"""A CPU limit that makes a task so many times slower explains that it is slow."""
CPU_REACHED = 0.8
"""Share of the CPU limit; the rest of the time goes by between a step and the next."""
BANDWIDTH_REACHED = 0.9
MEMORY_WAITS = 0.1
FAULTS_PER_S = 20.0
"""Where the kernel does not count the time spent waiting for memory."""
WORKS = 0.03
"""CPUs that a task uses at least that is not just waiting."""


@dataclass(frozen=True)
class Strain:
    """How a task has met its limits within some seconds. `slowed`: so many times, by its CPU
    limit."""

    seconds: float
    cpus: float
    of_cpu_limit: float
    slowed: float
    of_bandwidth: float
    memory: float
    """Share of the time in which something waited for memory."""

    @property
    def cause(self) -> str:
        """Why it may be slow."""
        if self.slowed >= HELD_UP:
            return CPU
        if self.of_bandwidth >= BANDWIDTH_REACHED:
            return BANDWIDTH
        return MEMORY if self.memory >= MEMORY_WAITS else UNKNOWN


def strain(before: Usage, after: Usage, seconds: float) -> Strain:
    """Between two looks at what a task has used."""
    cpu_s = after.cpu_s - before.cpu_s
    throttled_s = max(0.0, after.throttled_s - before.throttled_s)
    most = max(after.received - before.received, after.sent - before.sent)
    if after.memory_s is None or before.memory_s is None:
        memory = (after.faults - before.faults) / seconds / FAULTS_PER_S * MEMORY_WAITS
    else:
        memory = (after.memory_s - before.memory_s) / seconds
    return Strain(
        seconds=seconds,
        cpus=cpu_s / seconds,
        of_cpu_limit=cpu_s / seconds / after.cpus if after.cpus else 0.0,
        # Threads that want p CPUs and get the limit L wait together for p - L of the time.
        slowed=1 + throttled_s / cpu_s if cpu_s > WORKS * seconds and after.cpus else 1.0,
        of_bandwidth=most * 8 / seconds / after.bandwidth if after.bandwidth else 0.0,
        memory=memory,
    )


def reached_alone(
    cause: str, own: Sequence[Strain], others: Sequence[Sequence[Strain]]
) -> list[bool]:
    """For each part of a window, whether the task has reached this limit (CPU or BANDWIDTH) and the
    others have not."""
    return [_alone(cause, mine, theirs) for mine, *theirs in zip(own, *others)]


def are_idle(others: Sequence[Sequence[Strain]]) -> bool:
    """Whether others do nothing in some part of a window: they wait for more than a step."""
    return any(statistics.median(strain.cpus for strain in part) < WORKS for part in zip(*others))


def _alone(cause: str, own: Strain, others: Sequence[Strain]) -> bool:
    if cause == BANDWIDTH:
        theirs = statistics.median(other.of_bandwidth for other in others)
        return own.of_bandwidth >= BANDWIDTH_REACHED > theirs
    slowed = STRAGGLER_FACTOR * statistics.median(other.slowed for other in others)
    return own.of_cpu_limit >= CPU_REACHED and own.slowed > slowed
