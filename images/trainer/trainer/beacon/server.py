"""The leader's side of the beacon: it hears who is there, and says once that the job has ended."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from trainer.beacon import heard as hears
from trainer.beacon.heard import DONE, FAILED, LOST, Heard, HeardAgain, Joined, Left, Silent
from trainer.beacon.messages import (
    LONGEST_LINE,
    Beat,
    Done,
    End,
    Failed,
    Hello,
    Message,
    Report,
    Stacks,
    Stopping,
    Unanswered,
    decode,
    encode,
)
from trainer.beacon.silence import BEAT_S, Silence
from trainer.beacon.sockets import send, wait_for_close
from trainer.errors import ServerError
from trainer.task import Address
from trainer.usage import Usage

LINGER_S = 0.5
"""For the last word to be read."""
QUIET_S = 3.0
"""A shorter silence is nothing to speak of."""


@dataclass
class _Follower:
    connection: socket.socket
    name: str = ""
    run: str = ""
    unread: bytes = field(default=b"", repr=False)


class BeaconServer:
    """Listens at once, calls `heard` with what followers say, and speaks itself at the end.

    `heard` is called from the server's thread. A connection that closes after `hello`, without
    `done` or `failed`, is a follower that was lost; so is one whose task says hello in another run.
    `beat` is called once a second from there, too.

    Raises:
        ServerError: the address cannot be listened on.
    """

    def __init__(
        self,
        address: Address,
        heard: Callable[[Heard], None] = lambda event: None,
        beat: Callable[[], None] = lambda: None,
        silent_s: float = 0.0,
    ) -> None:
        try:
            family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
            self._socket = socket.create_server(
                (address.host, address.port), family=family, backlog=256
            )
        except OSError as problem:
            raise ServerError(f"the beacon cannot listen on {address}: {problem}") from problem
        self._heard = heard
        self._beat = beat
        self._silent_s = silent_s
        self._silence = Silence(time.monotonic())
        self._lock = threading.Lock()
        self._followers: list[_Follower] = []
        self._used: dict[str, Usage] = {}
        self._lines = b""
        self._ended = False
        threading.Thread(target=self._accept, name="beacon", daemon=True).start()

    def quiet(self) -> dict[str, float]:
        """Followers that are there, but have said nothing for QUIET_S, with the seconds."""
        return self._silence.longer_than(QUIET_S)

    def used(self) -> dict[str, Usage]:
        """What each follower has used, by its last word."""
        return dict(self._used)

    def ask_for_stacks(self) -> None:
        """Let every follower keep the stacks of its threads."""
        with self._lock:
            followers = list(self._followers)
        for follower in followers:
            send(follower.connection, encode(Stacks()), last=False)

    def stopping(self) -> None:
        """Tell every follower that the leader is saving: servers stay a moment longer."""
        self._say(Stopping())

    def announce(self, exit_code: int) -> None:
        """Tell every follower, and wait (at most LINGER_S) until they have read it."""
        followers = self._say(End(exit_code), last=True)
        until = time.monotonic() + LINGER_S
        for follower in followers:
            wait_for_close(follower.connection, until)

    def _say(self, message: Message, last: bool = False) -> list[_Follower]:
        line = encode(message)
        with self._lock:
            self._lines += line
            self._ended = self._ended or last
            followers = list(self._followers)
        for follower in followers:
            send(follower.connection, line, last)
        return followers

    def _accept(self) -> None:
        waiting = selectors.DefaultSelector()
        waiting.register(self._socket, selectors.EVENT_READ)
        beats_at = 0.0
        while True:
            for ready, _ in waiting.select(max(0.0, beats_at - time.monotonic())):
                if ready.fileobj is self._socket:
                    follower = self._welcome()
                    waiting.register(follower.connection, selectors.EVENT_READ, follower)
                elif not self._hear(ready.data):
                    waiting.unregister(ready.fileobj)
            if time.monotonic() >= beats_at:
                beats_at = time.monotonic() + BEAT_S
                self._live()

    def _live(self) -> None:
        """Once a second: a sign of life to all, and a look at who gives none."""
        self._beat()
        with self._lock:
            followers = [] if self._ended else [one for one in self._followers if one.name]
        for follower in followers:
            # One that reads nothing has a full buffer some day: it is silent, not gone.
            with contextlib.suppress(OSError):
                follower.connection.send(encode(Beat()))
        self._silence.look(time.monotonic())
        if self._silent_s:
            for task, seconds in self._silence.longer_than(self._silent_s).items():
                self._heard(Silent(task, seconds))

    def _welcome(self) -> _Follower:
        connection, _ = self._socket.accept()
        connection.setblocking(False)
        follower = _Follower(connection)
        with self._lock:
            self._followers.append(follower)
            lines, ended = self._lines, self._ended
        if lines:
            send(connection, lines, ended)
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
        if not received:
            self._goodbye(follower, LOST)
        elif follower.name and (seconds := self._silence.heard(follower.name)) > QUIET_S:
            self._heard(HeardAgain(follower.name, seconds))
        return bool(received)

    def _understand(self, follower: _Follower, message: Message | None) -> None:
        if isinstance(message, Hello):
            self._greet(follower, message.task, message.run)
        elif isinstance(message, Done):
            self._goodbye(follower, DONE)
        elif isinstance(message, Failed):
            self._goodbye(follower, FAILED, message.message)
        elif isinstance(message, Report):
            self._heard(message)
        elif isinstance(message, Beat) and message.used and follower.name:
            self._used[follower.name] = message.used
        elif isinstance(message, Unanswered) and follower.name:
            self._heard(hears.Unanswered(message.task, follower.name, message.seconds))

    def _greet(self, follower: _Follower, task: str, run: str) -> None:
        """It is new, or has come back: in another run, or on another connection of the same."""
        with self._lock:
            before = [one for one in self._followers if one.name == task and one is not follower]
        follower.name, follower.run = task, run
        for one in before:
            if one.run != run:
                self._goodbye(one, LOST)
            one.name = ""
        if not any(one.run == run for one in before):
            self._heard(Joined(task))

    def _goodbye(self, follower: _Follower, how: str, message: str = "") -> None:
        if follower.name:
            task, follower.name = follower.name, ""
            self._silence.forget(task)
            self._heard(Left(task, how, message))
