"""Clients of a leader's beacon."""

from __future__ import annotations

import contextlib
import socket
import time
from queue import SimpleQueue
from typing import NoReturn

from trainer.agent.beacon import handshake
from trainer.agent.beacon.client import BeaconClient, JobEnded
from trainer.agent.beacon.server import BeaconServer
from trainer.agent.task import Address

SECRET = b"5ec2e7"


def secret() -> bytes:
    """The secret that the followers of these tests know."""
    return SECRET


def listen(address: Address, start_deadline_s: float, lost_after_s: float = 30.0) -> JobEnded:
    """Returns the message with which a follower ends."""
    heard: SimpleQueue[JobEnded] = SimpleQueue()
    BeaconClient(address, secret, "worker-1", start_deadline_s, heard.put, lost_after_s)
    return heard.get(timeout=10)


class Over(BaseException):
    """Raised to end a thread of a leader or a follower."""


def end(leader: BeaconServer) -> None:
    """End a leader's thread, and all connections to it."""

    def leave() -> NoReturn:
        raise Over

    leader._welcome = leader._live = leave  # whichever of them it calls next
    others = (one.connection for one in (*leader._strangers, *leader._followers))
    for one in (leader._socket, *others):
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


def wait_for_connection(follower: BeaconClient) -> None:
    until = time.monotonic() + 20
    while not follower.connected:
        assert time.monotonic() < until, "it did not connect in time"
        time.sleep(0.01)


class Mute:
    """A follower that says hello, and then sends only what the test writes."""

    def __init__(self, address: Address, task: str, run: str) -> None:
        self.socket = joined(address)
        self.say(f"hello {task} {run}")

    def say(self, line: str) -> None:
        self.socket.sendall(line.encode() + b"\n")


def joined(address: Address) -> socket.socket:
    """Returns a connection to a leader on which both sides are authenticated."""
    connection = socket.create_connection((address.host, address.port))
    handshake.join(connection, SECRET)
    return connection


def accept(leader: socket.socket) -> socket.socket:
    """Accept a follower's connection as a test double of the leader, and authenticate it."""
    follower, _ = leader.accept()
    nonce = handshake.nonce()
    follower.sendall(handshake.challenge(nonce))
    answer = handshake.admitted(SECRET, nonce, follower.recv(handshake.LONGEST).rstrip(b"\n"))
    assert answer is not None
    follower.sendall(answer)
    return follower
