"""The leader's side of the beacon: followers connect to it, and it announces the job's end."""

from __future__ import annotations

import contextlib
import errno
import resource
import selectors
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from trainer.agent.beacon import handshake
from trainer.agent.beacon import messages as hears
from trainer.agent.beacon.handshake import send
from trainer.agent.beacon.messages import (
    DONE,
    FAILED,
    LONGEST_LINE,
    LOST,
    PERMANENT,
    Again,
    Beat,
    Done,
    End,
    Failed,
    Heard,
    HeardAgain,
    Hello,
    Joined,
    Left,
    Message,
    NoAnswer,
    Permanent,
    Report,
    Silent,
    Stacks,
    Stopping,
    decode,
    encode,
)
from trainer.agent.beacon.silence import Silence
from trainer.agent.errors import ServerError
from trainer.agent.task import Address
from trainer.agent.usage import Usage
from trainer.contract.times import BEAT_S

LINGER_S = 0.5
"""Seconds for which a connection stays open so that the other side can read the last message."""
QUIET_S = 3.0
"""Seconds; a shorter silence is not reported."""
MOST_STRANGERS = 256
"""Maximum number of unauthenticated connections; a further one replaces the oldest."""
MOST_TASKS = 10_000
"""The maximum number of task names that are stored."""
MOST_LINES = 4_000
"""Maximum messages per second; a follower that sends more is disconnected."""
REST_S = 0.05
"""Seconds to wait before the next connection is accepted if there are no free file descriptors."""
NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


@dataclass(eq=False)
class _Follower:
    connection: socket.socket
    nonce: bytes
    since: float
    proven: bool = False
    name: str = ""
    run: str = ""
    unread: bytes = field(default=b"", repr=False)
    lines: int = 0
    """The number of connections in this second."""
    stays: bool = False
    """Whether its program has ended for good; it waits for the job's end."""


class BeaconServer:
    """Listens at once, calls `heard` with followers' messages, and announces the job's end.

    Only followers that prove that they know the secret are heard. Other connections have no effect:
    none can end the thread or use up its resources.

    `heard` is called from the server's thread. A connection that closes after `hello`, without
    `done`, `failed` or `permanent`, means a lost follower; so does a second hello of the task from
    another process. `beat` is called once a second from that thread, too.

    Raises:
        ServerError: it cannot listen on the address.
    """

    def __init__(
        self,
        address: Address,
        secret: bytes,
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
        self._socket.setblocking(False)
        self._secret = secret
        self._heard = heard
        self._beat = beat
        self._silent_s = silent_s
        self._silence = Silence(time.monotonic())
        self._waiting = selectors.DefaultSelector()
        self._waiting.register(self._socket, selectors.EVENT_READ)
        self._strangers: dict[_Follower, None] = {}
        """The connections, oldest first; only the server's thread uses them."""
        self._most_strangers = min(MOST_STRANGERS, _descriptors() // 4)
        self._changed = threading.Condition()
        """Protects the fields below, and is held while sending, so that no descriptor is closed
        meanwhile."""
        self._followers: dict[_Follower, None] = {}
        self._used: dict[str, Usage] = {}
        self._names: set[str] = set()
        self._lines = b""
        self._ended = False
        threading.Thread(target=self._serve, name="beacon", daemon=True).start()

    def quiet(self) -> dict[str, float]:
        """Connected followers that have sent nothing for QUIET_S, with the seconds."""
        return self._silence.longer_than(QUIET_S)

    def used(self) -> dict[str, Usage]:
        """The usage of each follower, by its last message."""
        return dict(self._used)

    def ask_for_stacks(self) -> None:
        """Ask every follower to save the stacks of its threads."""
        self._ask(Stacks())

    def start_again(self) -> frozenset[str]:
        """Ask every follower to start its program again; return their tasks."""
        return self._ask(Again())

    def _ask(self, message: Message) -> frozenset[str]:
        """Send a message to the followers that are connected now; return their tasks."""
        with self._changed:
            for follower in self._followers:
                send(follower.connection, encode(message), last=False)
            return frozenset(follower.name for follower in self._followers if follower.proven)

    def stopping(self) -> None:
        """Notify every follower that the leader is saving: servers must run a moment longer."""
        self._say(Stopping())

    def announce(self, exit_code: int) -> None:
        """Announce the end to every follower; wait (at most LINGER_S) until all have read it."""
        followers = self._say(End(exit_code), last=True)
        with self._changed:
            self._changed.wait_for(lambda: followers.isdisjoint(self._followers), LINGER_S)

    def _say(self, message: Message, last: bool = False) -> set[_Follower]:
        line = encode(message)
        with self._changed:
            self._lines += line
            self._ended = self._ended or last
            for follower in self._followers:
                send(follower.connection, line, last)
            return set(self._followers)

    def _serve(self) -> None:
        beats_at = 0.0
        while True:
            for ready, _ in self._waiting.select(max(0.0, beats_at - time.monotonic())):
                if ready.data is None:
                    self._welcome()
                else:
                    self._attend(ready.data)
            if time.monotonic() >= beats_at:
                beats_at = time.monotonic() + BEAT_S
                self._live()

    def _live(self) -> None:
        """Called once a second: send a heartbeat to all, and find followers without one."""
        self._beat()
        too_late = time.monotonic() - handshake.ANSWER_S
        for stranger in [one for one in self._strangers if one.since < too_late]:
            self._part(stranger)
        with self._changed:
            for follower in self._followers:
                follower.lines = 0
                # If a follower does not read, its buffer fills up: it is silent, not lost.
                if (follower.name or follower.stays) and not self._ended:
                    with contextlib.suppress(OSError):
                        follower.connection.send(encode(Beat()))
        self._silence.look(time.monotonic())
        for task, seconds in self._silence.silent(self._silent_s).items():
            self._heard(Silent(task, seconds))

    def _welcome(self) -> None:
        """Accept a connection, which must then prove that it knows the secret."""
        try:
            connection, _ = self._socket.accept()
        except OSError as problem:
            if problem.errno in NO_ROOM:
                for stranger in list(self._strangers):
                    self._part(stranger)
                time.sleep(REST_S)
            return
        connection.setblocking(False)
        stranger = _Follower(connection, handshake.nonce(), time.monotonic())
        self._waiting.register(connection, selectors.EVENT_READ, stranger)
        self._strangers[stranger] = None
        send(connection, handshake.challenge(stranger.nonce), last=False)
        if len(self._strangers) > self._most_strangers:
            self._part(next(iter(self._strangers)))

    def _attend(self, follower: _Follower) -> None:
        """Read from a connection, and close it if it has ended or sent an invalid message."""
        try:
            stays = self._hear(follower)
        except Exception as problem:  # noqa: BLE001 - no connection may end this thread
            print(f"beacon: {follower.name}: {problem!r}", file=sys.stderr, flush=True)
            stays = False
        if not stays:
            self._part(follower)

    def _part(self, follower: _Follower) -> None:
        """Close a connection; its follower counts as lost unless it has reported its end."""
        with self._changed:
            if follower not in self._strangers and follower not in self._followers:
                return
            self._strangers.pop(follower, None)
            self._followers.pop(follower, None)
            self._waiting.unregister(follower.connection)
            follower.connection.close()
            self._changed.notify_all()
        self._goodbye(follower, LOST)

    def _hear(self, follower: _Follower) -> bool:
        """Process a message; returns whether the follower stays connected."""
        try:
            received = follower.connection.recv(LONGEST_LINE)
        except BlockingIOError:
            return True
        except OSError:  # reset, or closed a moment ago
            received = b""
        *lines, follower.unread = (follower.unread + received).split(b"\n")
        if lines and not follower.proven and not self._admit(follower, lines.pop(0)):
            return False
        follower.lines += len(lines)
        for line in lines:
            self._understand(follower, decode(line))
        longest = LONGEST_LINE if follower.proven else handshake.LONGEST
        if not received or follower.lines > MOST_LINES or len(follower.unread) > longest:
            return False
        if follower.name and (seconds := self._silence.heard(follower.name)) > QUIET_S:
            self._heard(HeardAgain(follower.name, seconds))
        return True

    def _admit(self, stranger: _Follower, line: bytes) -> bool:
        """Whether a first line proves that its sender knows the secret; if so, it becomes a
        follower."""
        answer = handshake.admitted(self._secret, stranger.nonce, line)
        if answer is None:
            return False
        del self._strangers[stranger]
        stranger.proven = True
        with self._changed:
            self._followers[stranger] = None
            send(stranger.connection, answer + self._lines, self._ended)
        return True

    def _understand(self, follower: _Follower, message: Message | None) -> None:
        if isinstance(message, Hello):
            self._greet(follower, message.task, message.run)
        elif isinstance(message, Done):
            follower.stays = True
            self._goodbye(follower, DONE)
        elif isinstance(message, Failed):
            self._goodbye(follower, FAILED, message.message)
        elif isinstance(message, Permanent):
            follower.stays = True
            self._goodbye(follower, PERMANENT, message.message, message.exit_code)
        elif isinstance(message, Report):
            self._heard(message)
        elif isinstance(message, Beat) and message.used and follower.name:
            self._used[follower.name] = message.used
        elif isinstance(message, NoAnswer) and follower.name:
            self._heard(hears.Unanswered(message.task, follower.name, message.seconds))

    def _greet(self, follower: _Follower, task: str, run: str) -> None:
        """Register a follower: a new one, one whose process was restarted, or one that
        reconnected."""
        if task not in self._names and len(self._names) >= MOST_TASKS:
            return
        self._names.add(task)
        before = [one for one in self._followers if one.name == task and one is not follower]
        follower.name, follower.run = task, run
        for one in before:
            if one.run == run:
                one.name = ""
            self._part(one)
        if not any(one.run == run for one in before):
            self._heard(Joined(task))

    def _goodbye(
        self, follower: _Follower, how: str, message: str = "", code: int | None = None
    ) -> None:
        if follower.name:
            task, follower.name = follower.name, ""
            self._silence.forget(task)
            self._heard(Left(task, how, message, code))


def _descriptors() -> int:
    """The number of descriptors that this process may have open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_STRANGERS * 4 if soft == resource.RLIM_INFINITY else soft
