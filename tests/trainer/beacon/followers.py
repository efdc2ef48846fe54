"""Who listens to a leader's beacon."""

from __future__ import annotations

import socket
import time
from queue import SimpleQueue

from trainer.beacon.client import BeaconClient, JobEnded
from trainer.task import Address


def listen(address: Address, start_deadline_s: float, lost_after_s: float = 30.0) -> JobEnded:
    """What a follower hears at the end."""
    heard: SimpleQueue[JobEnded] = SimpleQueue()
    BeaconClient(address, "worker-1", start_deadline_s, heard.put, lost_after_s)
    return heard.get(timeout=10)


def wait_for_connection(follower: BeaconClient) -> None:
    until = time.monotonic() + 20
    while not follower.connected:
        assert time.monotonic() < until, "it did not connect in time"
        time.sleep(0.01)


class Mute:
    """A follower that says hello, and then only what it is told to."""

    def __init__(self, address: Address, task: str, run: str) -> None:
        self.socket = socket.create_connection((address.host, address.port))
        self.say(f"hello {task} {run}")

    def say(self, line: str) -> None:
        self.socket.sendall(line.encode() + b"\n")
