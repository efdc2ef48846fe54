"""What both sides of the beacon do with a socket."""

from __future__ import annotations

import contextlib
import socket


def send(connection: socket.socket, line: bytes, last: bool) -> None:
    """Send a line to a follower, if it is still there; it hears no more after the `last` one.

    One that cannot take it is cut off. Whoever reads from the connection closes it then.
    """
    try:
        if connection.send(line) < len(line):
            raise OSError("its buffer is full")
        if last:
            connection.shutdown(socket.SHUT_WR)
    except OSError:
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)


def keep_asking(leader: socket.socket) -> None:
    """Let the kernel notice within 30 s that the other side is gone without a word."""
    leader.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    leader.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10)
    leader.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5)
    leader.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4)
