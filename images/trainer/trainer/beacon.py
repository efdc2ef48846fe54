"""The beacon: one TCP line by which the leader tells every other task that the job has ended.

A connection that closes without the line is a crash of the leader: followers come back for 30 s.
"""

from __future__ import annotations

import selectors
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from trainer.errors import ServerError
from trainer.task import Address

LOST_AFTER_S = 30.0
LINGER_S = 0.5
REPORT_BYTES = 4096


@dataclass(frozen=True)
class JobEnded:
    """What a follower learned: the leader's exit code, or None where the leader was lost."""

    exit_code: int | None
    seen: bool = True
    """False when the leader never appeared before the start deadline."""


class Announcer:
    """The leader's side: listens at once, speaks once, and passes on what a follower reports."""

    def __init__(
        self, address: Address, heard: Callable[[str], None] = lambda report: None
    ) -> None:
        try:
            family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
            self._socket = socket.create_server(
                (address.host, address.port), family=family, backlog=256
            )
        except OSError as problem:
            raise ServerError(f"the beacon cannot listen on {address}: {problem}") from problem
        self._heard = heard
        self._lock = threading.Lock()
        self._followers: list[socket.socket] = []
        self._line = b""
        threading.Thread(target=self._accept, name="beacon", daemon=True).start()

    def announce(self, exit_code: int) -> None:
        """Tell every follower, and wait (at most LINGER_S) until they have read it."""
        with self._lock:
            self._line = b"end %d\n" % exit_code
            followers = list(self._followers)
        until = time.monotonic() + LINGER_S
        for follower in followers:
            _say(follower, self._line)
        for follower in followers:
            _wait_for_close(follower, until)

    def _accept(self) -> None:
        waiting = selectors.DefaultSelector()
        waiting.register(self._socket, selectors.EVENT_READ)
        while True:
            for ready, _ in waiting.select():
                if ready.fileobj is self._socket:
                    waiting.register(self._welcome(), selectors.EVENT_READ)
                else:
                    waiting.unregister(ready.fileobj)
                    self._hear(ready.fileobj)

    def _welcome(self) -> socket.socket:
        follower, _ = self._socket.accept()
        follower.setblocking(False)
        with self._lock:
            self._followers.append(follower)
            line = self._line
        if line:
            _say(follower, line)
        return follower

    def _hear(self, follower: socket.socket) -> None:
        """A report, or the end of the connection."""
        try:
            line = follower.recv(REPORT_BYTES)
        except OSError:
            return  # reset, or closed by announce()
        if line.startswith(b"report "):
            self._heard(line.decode(errors="replace").removeprefix("report ").strip())


def report(address: Address, line: str, patience_s: float = LOST_AFTER_S) -> None:
    """Tell the leader; in vain where it stays away."""
    message = f"report {line}\n".encode()[:REPORT_BYTES]
    until = time.monotonic() + patience_s
    while True:
        try:
            with socket.create_connection((address.host, address.port), timeout=1.0) as leader:
                leader.sendall(message)
                return
        except OSError:
            if time.monotonic() > until:
                return
            time.sleep(0.1)


def _say(follower: socket.socket, line: bytes) -> None:
    try:
        follower.send(line)
        follower.shutdown(socket.SHUT_WR)
    except OSError:
        follower.close()  # it went before us, and needs no telling


def _wait_for_close(follower: socket.socket, until: float) -> None:
    try:
        follower.settimeout(max(0.001, until - time.monotonic()))
        follower.recv(1)
    except OSError:
        return  # gone, closed by _say, or too slow


def follow(address: Address, start_deadline_s: float, then: Callable[[JobEnded], None]) -> None:
    """Call `then` once, from a thread: when the job ended, or the leader is lost."""
    threading.Thread(
        target=lambda: then(listen(address, start_deadline_s)), name="beacon", daemon=True
    ).start()


def listen(
    address: Address, start_deadline_s: float, lost_after_s: float = LOST_AFTER_S
) -> JobEnded:
    """Block until the leader has spoken, or was away for `lost_after_s`."""
    seen = False
    until = time.monotonic() + start_deadline_s
    pause = 0.05
    while time.monotonic() < until:
        try:
            leader = socket.create_connection((address.host, address.port), timeout=1.0)
        except OSError:
            time.sleep(pause)
            pause = min(0.5, pause * 1.5)
            continue
        line = _read_line(leader)
        if line.startswith(b"end "):
            return JobEnded(int(line.split()[1]))
        seen, pause = True, 0.05
        until = time.monotonic() + lost_after_s
        time.sleep(pause)
    return JobEnded(None, seen=seen)


def _read_line(leader: socket.socket) -> bytes:
    """The leader's line; b"" when it closed or stopped answering keep-alives (about 30 s)."""
    leader.settimeout(None)
    leader.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    leader.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10)
    leader.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5)
    leader.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4)
    line = b""
    with leader:
        try:
            while not line.endswith(b"\n"):
                received = leader.recv(64)
                if not received:
                    return b""
                line += received
        except OSError:
            return b""
    return line
