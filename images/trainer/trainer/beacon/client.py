"""The followers' side of the beacon: they hear from the leader when the job has ended.

A connection that closes without that line is a crash of the leader: followers try again for 30 s.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from trainer.beacon.messages import End, Hello, Message, Report, Stopping, decode, encode
from trainer.task import Address

LOST_AFTER_S = 30.0


@dataclass(frozen=True)
class JobEnded:
    """What a follower learned: the leader's exit code, or None if the leader was lost."""

    exit_code: int | None
    seen: bool = True
    """False when the leader never appeared before the start deadline."""


@dataclass(frozen=True)
class LeaderStopping:
    """The leader was told to stop, and is saving what it has."""


class BeaconClient:
    """Keeps a connection to the leader; `then` gets LeaderStopping, and JobEnded once."""

    def __init__(
        self,
        address: Address,
        name: str,
        start_deadline_s: float,
        then: Callable[[JobEnded | LeaderStopping], None],
        lost_after_s: float = LOST_AFTER_S,
    ) -> None:
        self._address = address
        self._hello = encode(Hello(name))
        self._then = then
        self._lost_after_s = lost_after_s
        self._leader: socket.socket | None = None
        threading.Thread(
            target=self._follow, args=(start_deadline_s,), name="beacon", daemon=True
        ).start()

    @property
    def connected(self) -> bool:
        """Whether the leader is there now."""
        return self._leader is not None

    def say(self, message: Message) -> None:
        """Send the message, if the leader is there now."""
        leader = self._leader
        if leader:
            with contextlib.suppress(OSError):
                leader.sendall(encode(message))

    def _follow(self, start_deadline_s: float) -> None:
        seen = False
        until = time.monotonic() + start_deadline_s
        pause = 0.05
        while time.monotonic() < until:
            try:
                leader = socket.create_connection(
                    (self._address.host, self._address.port), timeout=1.0
                )
                leader.sendall(self._hello)
            except OSError:
                time.sleep(pause)
                pause = min(0.5, pause * 1.5)
                continue
            self._leader = leader
            code = self._listen(leader)
            self._leader = None
            if code is not None:
                self._then(JobEnded(code))
                return
            seen, pause = True, 0.05
            until = time.monotonic() + self._lost_after_s
            time.sleep(pause)
        self._then(JobEnded(None, seen=seen))

    def _listen(self, leader: socket.socket) -> int | None:
        """The exit code that the leader says; None when it closed or fell silent (about 30 s)."""
        keep_asking(leader)
        with leader, contextlib.suppress(OSError), leader.makefile("rb") as lines:
            for line in lines:
                match decode(line) if line.endswith(b"\n") else None:
                    case End(code):
                        return code
                    case Stopping():
                        self._then(LeaderStopping())
        return None


def keep_asking(leader: socket.socket) -> None:
    """Let the kernel notice within 30 s that the other side is gone without a word."""
    leader.settimeout(None)
    leader.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    leader.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10)
    leader.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5)
    leader.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4)


def send_report(address: Address, report: Report, patience_s: float = LOST_AFTER_S) -> None:
    """Tell the leader something that ends the job; given up after `patience_s` seconds."""
    until = time.monotonic() + patience_s
    while True:
        try:
            with socket.create_connection((address.host, address.port), timeout=1.0) as leader:
                leader.sendall(encode(report))
                return
        except OSError:
            if time.monotonic() > until:
                return
            time.sleep(0.1)
