"""The limits of this container, and how often it has met them, as its control group tells.

Version 2 has one folder, version 1 one for each kind. What a host does not tell is unknown.
"""

from __future__ import annotations

from pathlib import Path

from trainer.agent.atomic import read

MOUNT = Path("/sys/fs/cgroup")


def cpu_limit(mount: Path = MOUNT) -> float | None:
    """In CPUs; None if there is no limit, or it is unknown."""
    if text := _read(mount / "cpu.max"):
        quota, _, period = text.partition(" ")
    else:
        quota = _read(mount / "cpu" / "cpu.cfs_quota_us")
        period = _read(mount / "cpu" / "cpu.cfs_period_us")
    if not (quota.isdecimal() and period.isdecimal() and int(period)):
        return None
    return int(quota) / int(period)


def throttled_s(mount: Path = MOUNT) -> float:
    """Seconds for which the CPU limit has kept threads from running, of all together."""
    counts = _counts(mount / "cpu.stat")
    if "throttled_usec" in counts:
        return counts["throttled_usec"] / 1e6
    return _counts(mount / "cpu" / "cpu.stat").get("throttled_time", 0) / 1e9


def memory(mount: Path = MOUNT) -> int | None:
    """Bytes in use, without the files that the kernel could drop: what `docker stats` shows.

    None if the host does not tell.
    """
    for used, counts, files in (
        (mount / "memory.current", mount / "memory.stat", "inactive_file"),
        (mount / "memory" / "memory.usage_in_bytes", mount / "memory" / "memory.stat",
         "total_inactive_file"),
    ):  # fmt: skip
        if (text := _read(used)).isdecimal():
            return max(int(text) - _counts(counts).get(files, 0), 0)
    return None


def memory_s(mount: Path = MOUNT) -> float | None:
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
