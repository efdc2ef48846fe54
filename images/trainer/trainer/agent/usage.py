"""Reads this container's usage so far, and its limits.

Limits and memory come from its control group: version 2 has one folder, version 1 has one for each
resource. Values that a host does not report are None.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from pathlib import Path

from trainer.agent.atomic import read
from trainer.agent.outcome import traffic

MOUNT = Path("/sys/fs/cgroup")


def cpu_limit(mount: Path = MOUNT) -> float | None:
    """The CPU limit in CPUs; None if there is none, or it is unknown."""
    if text := _read(mount / "cpu.max"):
        quota, _, period = text.partition(" ")
    else:
        quota = _read(mount / "cpu" / "cpu.cfs_quota_us")
        period = _read(mount / "cpu" / "cpu.cfs_period_us")
    if not (quota.isdecimal() and period.isdecimal() and int(period)):
        return None
    return int(quota) / int(period)


def cpu_throttled_s(mount: Path = MOUNT) -> float:
    """Seconds for which the CPU limit has kept threads from running, summed over all threads."""
    counts = _counts(mount / "cpu.stat")
    if "throttled_usec" in counts:
        return counts["throttled_usec"] / 1e6
    return _counts(mount / "cpu" / "cpu.stat").get("throttled_time", 0) / 1e9


def control_group_memory(mount: Path = MOUNT) -> int | None:
    """Bytes in use, without file pages that the kernel could drop, as `docker stats` shows.

    None if the host does not report it.
    """
    for used, counts, files in (
        (mount / "memory.current", mount / "memory.stat", "inactive_file"),
        (mount / "memory" / "memory.usage_in_bytes", mount / "memory" / "memory.stat",
         "total_inactive_file"),
    ):  # fmt: skip
        if (text := _read(used)).isdecimal():
            return max(int(text) - _counts(counts).get(files, 0), 0)
    return None


def memory_waited_s(mount: Path = MOUNT) -> float | None:
    """Seconds in which some thread waited for memory; None if the kernel does not count them."""
    for line in _read(mount / "memory.pressure").splitlines():
        kind, _, rest = line.partition(" ")
        total = rest.rpartition("total=")[2]
        if kind == "some" and total.isdecimal():
            return int(total) / 1e6
    return None


def _counts(file: Path) -> dict[str, int]:
    pairs = (line.partition(" ") for line in _read(file).splitlines())
    return {name: int(value) for name, _, value in pairs if value.isdecimal()}


def _read(file: Path) -> str:
    try:
        return read(file).decode().strip()
    except OSError:
        return ""


PROCESSES = Path("/proc")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
SHAPED = "CLUSTER_KIT_SHAPED_BPS"
"""The variable with the bandwidth limit of this task's network, in bits per second."""
UNKNOWN = "-"
MOST = 2.0**63
"""Every valid count is smaller."""


@dataclass(frozen=True)
class Usage:
    """Counts since the container's start, times in seconds; None: unknown, or no limit."""

    cpu_s: float = 0.0
    received: int = 0
    """Bytes, like `sent`; 0 if the kernel does not count them."""
    sent: int = 0
    throttled_s: float = 0.0
    """Seconds of all threads together in which the CPU limit kept them from running."""
    faults: int = 0
    """Pages that had to be read from a disk: many mean a lack of memory."""
    memory_s: float | None = None
    """Seconds in which some thread waited for memory."""
    cpus: float | None = None
    """The CPU limit."""
    bandwidth: int | None = None
    """The limit each way, bits per second."""

    @property
    def bytes(self) -> int:
        """Received and sent."""
        return self.received + self.sent

    def words(self) -> list[str]:
        """The values as text, in order."""
        values = (getattr(self, field.name) for field in fields(self))
        return [_word(value) for value in values]

    @classmethod
    def of_words(cls, words: list[str]) -> Usage | None:
        """The usage in `words`; None if they are invalid."""
        if len(words) != len(fields(cls)):
            return None
        try:
            values = [None if word == UNKNOWN else float(word) for word in words]
        except ValueError:
            return None
        cpu_s, received, sent, throttled_s, faults, memory_s, cpus, bandwidth = values
        if None in values[:5] or not all(value is None or 0 <= value < MOST for value in values):
            return None
        return cls(
            cpu_s, int(received), int(sent), throttled_s, int(faults), memory_s, cpus,
            None if bandwidth is None else int(bandwidth),
        )  # fmt: skip


def _word(value: float | None) -> str:
    if value is None:
        return UNKNOWN
    return str(value) if isinstance(value, int) else f"{value:.3f}"


def read_usage() -> Usage:
    """The usage of this container since its start."""
    counted = traffic()
    cpu_s, faults = cpu_and_faults()
    shaped = os.environ.get(SHAPED, "")
    return Usage(
        cpu_s=cpu_s,
        received=counted.get("rx_bytes", 0),
        sent=counted.get("tx_bytes", 0),
        throttled_s=cpu_throttled_s(),
        faults=faults,
        memory_s=memory_waited_s(),
        cpus=cpu_limit(),
        bandwidth=int(shaped) if shaped.isdecimal() else None,
    )


def cpu_and_faults() -> tuple[float, int]:
    """CPU seconds and major page faults of all processes of the container, including ended ones
    that their parents have waited for.

    The files of control groups differ between hosts; those of processes do not.
    """
    ticks = faults = 0
    for process in os.listdir(PROCESSES):  # noqa: PTH208 - asked each second: glob takes longer
        if not process.isdecimal():
            continue
        try:
            # After the name in brackets, which may hold anything: majflt, cmajflt, and utime,
            # stime, cutime, cstime.
            values = read(f"{PROCESSES}/{process}/stat").rpartition(b")")[2].split()
            faults += int(values[9]) + int(values[10])
            ticks += sum(map(int, values[11:15]))
        except (OSError, ValueError, IndexError):
            continue  # it has already ended
    return ticks / TICKS_PER_S, faults
