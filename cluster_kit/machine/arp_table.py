"""The kernel's ARP table: how many addresses it holds, and may hold."""

from __future__ import annotations

from pathlib import Path

from cluster_kit.facts import ArpTable

SETTINGS = Path("/proc/sys/net/ipv4/neigh/default")
STATISTICS = Path("/proc/net/stat/arp_cache")


def read(settings: Path = SETTINGS, statistics: Path = STATISTICS) -> ArpTable | None:
    """Returns the table; None if there is no such file, as in a container.

    The statistics have a line for each CPU, all with the same number of entries, in hexadecimal.
    """
    try:
        limit = int((settings / "gc_thresh3").read_text())
        _, first, *_ = statistics.read_text().splitlines()
        return ArpTable(int(first.split()[0], 16), limit)
    except (OSError, ValueError, IndexError):
        return None


def widen(limit: int, settings: Path = SETTINGS) -> None:
    """Let the table have this many entries until the next boot.

    Beyond gc_thresh2 the kernel throws entries away that it has not used for 5 s: half of it.

    Raises:
        OSError: only root may do that.
    """
    (settings / "gc_thresh3").write_text(str(limit))
    (settings / "gc_thresh2").write_text(str(limit // 2))
