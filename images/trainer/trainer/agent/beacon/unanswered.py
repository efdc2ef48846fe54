"""Finds tasks that answer their leader but not us: the kernel asks them again and again.

TCP repeats what nobody has acknowledged, also to a task whose process is frozen but whose kernel is
there: only a network that is cut leaves it unanswered. The kernel's own tables show it, so that no
task has to ask any other.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path

from trainer.agent.task import Task, addresses_by_task
from trainer.contract import heartbeat

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
ESTABLISHED, SYN_SENT = "01", "02"
MAPPED = b"\0" * 10 + b"\xff\xff"
"""What stands before an IPv4 address in a socket of both families."""
GAP_S = 4.0
"""TensorFlow closes a connection that is dead, and waits before it opens the next one."""


class Watch:
    """For how many seconds each of these tasks has left this one without an answer.

    Args:
        tasks: the tasks' names by address, `10.0.0.5:2222`.
    """

    def __init__(self, tasks: Mapping[str, str]) -> None:
        self._tasks = tasks
        self._looked_at = 0.0
        self._last: dict[str, float] = {}
        self._seconds: dict[str, float] = {}

    def look(self, now: float, tables: Iterable[str]) -> dict[str, float]:
        """Seconds by task, of those that do not answer now.

        Args:
            now: seconds of a monotonic clock.
            tables: the texts of TABLES.
        """
        passed, self._looked_at = heartbeat.passed(self._looked_at, now), now
        asked = {address for table in tables for address in asked_again(table)}
        here = {self._tasks[address] for address in asked if address in self._tasks}
        for task in here:
            self._last[task] = now
        for task in [task for task, last in self._last.items() if now - last > GAP_S]:
            del self._last[task]
        self._seconds = {task: self._seconds.get(task, 0.0) + passed for task in self._last}
        return {task: self._seconds[task] for task in here}


def others(task: Task) -> dict[str, str]:
    """Names by address of the cluster's other tasks, the leader left out."""
    found = addresses_by_task(task.cluster).items()
    return {address: name for name, address in found if name not in (task.name, task.leader)}


def read_tables() -> list[str]:
    """The kernel's tables of this container's connections; without those that are not there."""
    return [table.read_text() for table in TABLES if table.exists()]


def asked_again(table: str) -> set[str]:
    """The addresses to which something was sent more than once without an acknowledgement.

    Args:
        table: as /proc/net/tcp, see proc_net_tcp.rst in the kernel's documentation.
    """
    found = set()
    for line in table.splitlines()[1:]:
        _, _, remote, state, _, _, again, *_ = line.split()
        if again != "00000000" and state in (ESTABLISHED, SYN_SENT):
            found.add(address(remote))
    return found


def address(remote: str) -> str:
    """`10.0.0.5:2222` for `0500000A:08AE`: words of 32 bits in this machine's byte order."""
    host, _, port = remote.partition(":")
    words = [int(host[at : at + 8], 16) for at in range(0, len(host), 8)]
    octets = struct.pack(f"={len(words)}I", *words)
    if octets.startswith(MAPPED) and len(octets) == len(MAPPED) + 4:
        octets = octets[len(MAPPED) :]
    if len(octets) == 4:
        return f"{socket.inet_ntoa(octets)}:{int(port, 16)}"
    return f"[{socket.inet_ntop(socket.AF_INET6, octets)}]:{int(port, 16)}"
