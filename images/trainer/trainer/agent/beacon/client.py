"""The followers' side of the beacon: the leader informs them when the job has ended.

If a connection closes without that line, the leader has crashed, and followers try to reconnect for
30 s. The same applies if the leader sends nothing, counted from its last message.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from trainer.agent.atomic import read
from trainer.agent.beacon import handshake
from trainer.agent.beacon.handshake import keep_asking
from trainer.agent.beacon.messages import (
    LONGEST_LINE,
    Again,
    Beat,
    End,
    Hello,
    Message,
    NoAnswer,
    Report,
    Stacks,
    Stopping,
    decode,
    encode,
)
from trainer.agent.beacon.silence import Silence
from trainer.agent.task import Address, Task, addresses_by_task
from trainer.agent.usage import read_usage
from trainer.contract import heartbeat
from trainer.contract.times import BEAT_S, LEADER_LOST_S

# Finds tasks that answer their leader but not this task. TCP repeats unacknowledged data. The
# kernel of a frozen process still acknowledges data, so only a cut network leaves it unanswered.
# The kernel's tables show this, so tasks need not query each other. Reading them takes 10 ms of CPU
# time, since the kernel searches the connections of the whole machine: a task reads them only while
# a connection of its own waits in vain.

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
COUNTS = Path("/proc/net/netstat")
ESTABLISHED, SYN_SENT = "01", "02"
MAPPED = b"\0" * 10 + b"\xff\xff"
"""The prefix of an IPv4 address in a socket of both families."""
GAP_S = 4.0
"""Seconds without a connection: TensorFlow closes a dead one, and waits before it opens another."""


class UnansweredTasks:
    """Measures for how many seconds each of these tasks has not answered this one.

    Args:
        tasks: the tasks' names by address, `10.0.0.5:2222`.
    """

    def __init__(self, tasks: Mapping[str, str]) -> None:
        self._tasks = tasks
        self._looked_at = 0.0
        self._last: dict[str, float] = {}
        self._seconds: dict[str, float] = {}
        self._timeouts: int | None = None

    def needs_tables(self, timeouts: int | None) -> bool:
        """Whether the tables can show that a task does not answer; else `look` needs none.

        Args:
            timeouts: how often its connections have waited in vain so far; None if the kernel does
                not count that.
        """
        before, self._timeouts = self._timeouts, timeouts
        return timeouts is None or timeouts != before or bool(self._last)

    def look(self, now: float, tables: Iterable[str]) -> dict[str, float]:
        """The seconds without an answer, by task, for tasks that do not answer now.

        Args:
            now: seconds of a monotonic clock.
            tables: the texts of TABLES.
        """
        passed, self._looked_at = heartbeat.passed(self._looked_at, now), now
        addresses = {address_of for table in tables for address_of in retransmitted_to(table)}
        here = {self._tasks[address_of] for address_of in addresses if address_of in self._tasks}
        for task in here:
            self._last[task] = now
        for task in [task for task, last in self._last.items() if now - last > GAP_S]:
            del self._last[task]
        self._seconds = {task: self._seconds.get(task, 0.0) + passed for task in self._last}
        return {task: self._seconds[task] for task in here}


def others(task: Task) -> dict[str, str]:
    """Names by address of the cluster's other tasks, except the leader."""
    tasks_by_address = addresses_by_task(task.cluster).items()
    return {
        address_of: name
        for name, address_of in tasks_by_address
        if name not in (task.name, task.leader)
    }


def read_tables() -> list[str]:
    """The kernel's existing tables of this container's connections."""
    return [table.read_text() for table in TABLES if table.exists()]


def read_counts() -> str:
    """The kernel's counts of this container's network; "" if it has none."""
    try:
        return read(COUNTS).decode()
    except OSError:
        return ""


def timeouts_in(counts: str) -> int | None:
    """Returns how often this container's TCP has waited in vain for an acknowledgement; None if
    unknown.

    Args:
        counts: as /proc/net/netstat, which has a line of names and one of values. RetransSegs of
            /proc/net/snmp will not do: it counts tail loss probes (RFC 8985), too, which a busy
            machine sends all the time.
    """
    lines = [line.split() for line in counts.splitlines() if line.startswith("TcpExt:")]
    if len(lines) != 2:
        return None
    value = dict(zip(*lines)).get("TCPTimeouts", "")
    return int(value) if value.isdecimal() else None


def retransmitted_to(table: str) -> set[str]:
    """The addresses to which data was sent more than once without an acknowledgement.

    Args:
        table: as /proc/net/tcp, see proc_net_tcp.rst in the kernel's documentation.
    """
    addresses = set()
    for line in table.splitlines()[1:]:
        _, _, remote, state, _, _, again, *_ = line.split()
        if again != "00000000" and state in (ESTABLISHED, SYN_SENT):
            addresses.add(address_of(remote))
    return addresses


def address_of(remote: str) -> str:
    """`10.0.0.5:2222` for `0500000A:08AE`: words of 32 bits in this machine's byte order."""
    host, _, port = remote.partition(":")
    words = [int(host[at : at + 8], 16) for at in range(0, len(host), 8)]
    octets = struct.pack(f"={len(words)}I", *words)
    if octets.startswith(MAPPED) and len(octets) == len(MAPPED) + 4:
        octets = octets[len(MAPPED) :]
    if len(octets) == 4:
        return f"{socket.inet_ntoa(octets)}:{int(port, 16)}"
    return f"[{socket.inet_ntop(socket.AF_INET6, octets)}]:{int(port, 16)}"


LEADER = "leader"
SOON_S = BEAT_S / 2
"""The fewest seconds between two beats."""


@dataclass(frozen=True)
class JobEnded:
    """The end of the job for a follower: the leader's exit code, or None if the leader was lost."""

    exit_code: int | None
    seen: bool = True
    """Whether the leader appeared before the start deadline."""


@dataclass(frozen=True)
class LeaderStopping:
    """The leader is being stopped, and saves its state."""


@dataclass(frozen=True)
class StacksWanted:
    """The job hangs, and the leader requests the stacks."""


@dataclass(frozen=True)
class AgainWanted:
    """The job hung, and the leader starts its program again."""


class BeaconClient:
    """Keeps a connection to the leader; `then` is called with its messages, and once with JobEnded.

    `secret` returns the run's secret, or raises OSError if there is none yet. A server at the
    address that does not know the secret is not the leader, and is ignored.

    If the leader sends nothing for `silent_s` seconds, a new connection is opened; 0: only the
    kernel detects a lost leader, within 30 s. The leader gets the names of those `others` (names by
    address) that have not answered for `silent_s`.
    """

    def __init__(
        self,
        address: Address,
        secret: Callable[[], bytes],
        name: str,
        start_deadline_s: float,
        then: Callable[[JobEnded | LeaderStopping | StacksWanted | AgainWanted], None],
        lost_after_s: float = LEADER_LOST_S,
        silent_s: float = 0.0,
        others: Mapping[str, str] | None = None,
    ) -> None:
        self._address = address
        self._secret = secret
        self._hello = encode(Hello(name, os.urandom(8).hex()))
        self._then = then
        self._lost_after_s = lost_after_s
        self._silent_s = silent_s
        self._others = UnansweredTasks(others or {})
        self._saying = threading.Lock()
        self._lasting = b""
        self._leader: socket.socket | None = None
        threading.Thread(
            target=self._follow, args=(start_deadline_s,), name="beacon", daemon=True
        ).start()

    @property
    def connected(self) -> bool:
        """Whether there is a connection to the leader now."""
        return self._leader is not None

    def say(self, message: Message) -> None:
        """Send the message if there is a connection to the leader now."""
        with self._saying:
            leader = self._leader
            if leader:
                with contextlib.suppress(OSError):
                    leader.sendall(encode(message))

    def say_always(self, message: Message) -> None:
        """Send the message now, and again after each further connection to a leader."""
        with self._saying:
            self._lasting = encode(message)
        self.say(message)

    def _beat(self) -> None:
        self.say(Beat(read_usage()))
        if self._silent_s:
            needed = self._others.needs_tables(timeouts_in(read_counts()))
            tables = read_tables() if needed else []
            for task, seconds in self._others.look(time.monotonic(), tables).items():
                if heartbeat.is_silent(seconds, self._silent_s):
                    self.say(NoAnswer(task, seconds))

    def _follow(self, start_deadline_s: float) -> None:
        seen = False
        until = time.monotonic() + start_deadline_s
        pause = 0.05
        while time.monotonic() < until:
            patience_s = min(handshake.PATIENCE_S, until - time.monotonic())
            try:
                leader, unread = _connected(self._address, self._secret(), patience_s, self._hello)
            except OSError:
                time.sleep(pause)
                pause = min(0.5, pause * 1.5)
                continue
            with self._saying:
                before, self._leader = self._leader, leader
                with contextlib.suppress(OSError):
                    leader.sendall(self._lasting)
            if before:
                # Only now, because the leader then knows that this task is not lost.
                before.close()
            code, silent = self._listen(leader, unread)
            if code is not None:
                self._leader = None
                self._then(JobEnded(code))
                return
            if not silent:
                self._leader = None
                leader.close()
            seen, pause = True, 0.05
            until = time.monotonic() + self._lost_after_s - silent
            time.sleep(pause)
        self._then(JobEnded(None, seen=seen))

    def _listen(self, leader: socket.socket, unread: bytes) -> tuple[int | None, float]:
        """The leader's exit code (None if it closed the connection or is silent), and the seconds
        of its silence.

        Beats are sent when the leader's arrive, or after BEAT_S without one: a process that has
        slept needs a millisecond of CPU time to wake up, however little it does then.
        `unread` is data that was received before.
        """
        keep_asking(leader)
        silence = Silence(time.monotonic())
        silence.heard(LEADER)
        leader.settimeout(BEAT_S)
        beaten_at = time.monotonic()
        while True:
            *lines, unread = unread.split(b"\n")
            for line in lines:
                message = decode(line)
                if isinstance(message, End):
                    leader.close()
                    return message.exit_code, 0.0
                if isinstance(message, Stopping):
                    self._then(LeaderStopping())
                elif isinstance(message, Stacks):
                    self._then(StacksWanted())
                elif isinstance(message, Again):
                    self._then(AgainWanted())
            if len(unread) > LONGEST_LINE:
                return None, 0.0
            if time.monotonic() - beaten_at > SOON_S:
                # A sandbox's /proc may differ, and this thread must still hear of the job's end.
                with contextlib.suppress(OSError, ValueError, LookupError):
                    self._beat()
                beaten_at = time.monotonic()
            try:
                received = leader.recv(LONGEST_LINE)
            except socket.timeout:  # TimeoutError since Python 3.10
                silence.look(time.monotonic())
                if too_long := silence.silent(self._silent_s):
                    return None, too_long[LEADER]
                continue
            except OSError:
                return None, 0.0
            if not received:
                return None, 0.0
            silence.look(time.monotonic())
            silence.heard(LEADER)
            unread += received


def _connected(
    address: Address, secret: bytes, patience_s: float, line: bytes
) -> tuple[socket.socket, bytes]:
    """An authenticated connection after sending the line, and the data read so far; raises
    OSError."""
    leader = socket.create_connection((address.host, address.port), timeout=1.0)
    try:
        unread = handshake.join(leader, secret, patience_s)
        leader.sendall(line)
    except OSError:
        leader.close()
        raise
    return leader, unread


def send_report(
    address: Address,
    secret: Callable[[], bytes],
    report: Report,
    patience_s: float = LEADER_LOST_S,
) -> None:
    """Send the leader a report that ends the job; gives up after `patience_s` seconds."""
    until = time.monotonic() + patience_s
    while True:
        try:
            longest = min(handshake.PATIENCE_S, max(0.1, until - time.monotonic()))
            leader, _ = _connected(address, secret(), longest, encode(report))
            leader.close()
            return
        except OSError:
            if time.monotonic() > until:
                return
            time.sleep(0.1)
