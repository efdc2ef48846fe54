"""Ports of this machine's loopback, for programs to which port 0 cannot be given."""

from __future__ import annotations

import contextlib
import random
import socket


def free_port() -> int:
    """Returns a TCP port that is not in use, and that the system does not assign to others.

    The port is outside the range of outgoing connections, so a program that listens on it later
    gets it.
    """
    for port in random.SystemRandom().sample(range(20_000, 30_000), 100):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("100 of the ports from 20000 to 30000 are taken")
