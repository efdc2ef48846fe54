"""The leader's side of the beacon: it hears who is there, and says once that the job has ended."""

from __future__ import annotations

import selectors
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from trainer.beacon.messages import (
    LONGEST_LINE,
    Done,
    End,
    Failed,
    Hello,
    Message,
    Report,
    Stopping,
    decode,
    encode,
)
from trainer.errors import ServerError
from trainer.task import Address

LINGER_S = 0.5


DONE, FAILED, LOST = "done", "failed", "lost"


@dataclass(frozen=True)
class Joined:
    """A follower said who it is: for the first time, or after a restart."""

    task: str


@dataclass(frozen=True)
class Left:
    """A follower is gone. `how`: DONE, FAILED (its program did), or LOST (without a word)."""

    task: str
    how: str
    message: str = ""


Heard = Joined | Left | Report


@dataclass
class _Follower:
    connection: socket.socket
    name: str = ""
    unread: bytes = field(default=b"", repr=False)


class BeaconServer:
    """Listens at once, calls `heard` with what followers say, and speaks itself at the end.

    `heard` is called from the server's thread. A connection that closes after `hello`, without
    `done` or `failed`, is a follower that was lost.

    Raises:
        ServerError: the address cannot be listened on.
    """

    def __init__(
        self,
        address: Address,
        heard: Callable[[Heard], None] = lambda event: None,
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
        self._followers: list[_Follower] = []
        self._lines = b""
        self._ended = False
        threading.Thread(target=self._accept, name="beacon", daemon=True).start()

    def stopping(self) -> None:
        """Tell every follower that the leader is saving: servers stay a moment longer."""
        self._say(Stopping())

    def announce(self, exit_code: int) -> None:
        """Tell every follower, and wait (at most LINGER_S) until they have read it."""
        followers = self._say(End(exit_code), last=True)
        until = time.monotonic() + LINGER_S
        for follower in followers:
            _wait_for_close(follower.connection, until)

    def _say(self, message: Message, last: bool = False) -> list[_Follower]:
        line = encode(message)
        with self._lock:
            self._lines += line
            self._ended = self._ended or last
            followers = list(self._followers)
        for follower in followers:
            _send(follower.connection, line, last)
        return followers

    def _accept(self) -> None:
        waiting = selectors.DefaultSelector()
        waiting.register(self._socket, selectors.EVENT_READ)
        while True:
            for ready, _ in waiting.select():
                if ready.fileobj is self._socket:
                    follower = self._welcome()
                    waiting.register(follower.connection, selectors.EVENT_READ, follower)
                elif not self._hear(ready.data):
                    waiting.unregister(ready.fileobj)

    def _welcome(self) -> _Follower:
        connection, _ = self._socket.accept()
        connection.setblocking(False)
        follower = _Follower(connection)
        with self._lock:
            self._followers.append(follower)
            lines, ended = self._lines, self._ended
        if lines:
            _send(connection, lines, ended)
        return follower

    def _hear(self, follower: _Follower) -> bool:
        """Whether the follower is still there."""
        try:
            received = follower.connection.recv(LONGEST_LINE)
        except BlockingIOError:
            return True
        except OSError:  # reset, or closed by announce()
            received = b""
        *lines, follower.unread = (follower.unread + received).split(b"\n")
        for line in lines:
            self._understand(follower, decode(line))
        follower.unread = follower.unread[:LONGEST_LINE]
        if not received and follower.name:
            self._heard(Left(follower.name, LOST))
        return bool(received)

    def _understand(self, follower: _Follower, message: Message | None) -> None:
        match message:
            case Hello(task):
                follower.name = task
                self._heard(Joined(task))
            case Done(task):
                follower.name = ""
                self._heard(Left(task, DONE))
            case Failed(task, text):
                follower.name = ""
                self._heard(Left(task, FAILED, text))
            case Report():
                self._heard(message)


def _send(connection: socket.socket, line: bytes, last: bool) -> None:
    try:
        connection.send(line)
        if last:
            connection.shutdown(socket.SHUT_WR)
    except OSError:
        connection.close()  # it went before us, and needs no telling


def _wait_for_close(connection: socket.socket, until: float) -> None:
    try:
        while True:
            connection.settimeout(max(0.001, until - time.monotonic()))
            if not connection.recv(LONGEST_LINE):
                return
    except OSError:
        return  # gone, closed by _send, or too slow
