"""Ports of this machine's loopback for what cannot be given port 0."""

from __future__ import annotations

import contextlib
import random
import socket


def free_port() -> int:
    """A TCP port that nobody listens on, and that the system gives nobody who asks for any port.

    Who listens on it later has it for sure: it is no port of an outgoing connection.
    """
    for port in random.SystemRandom().sample(range(20_000, 30_000), 100):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("100 of the ports from 20000 to 30000 are taken")
