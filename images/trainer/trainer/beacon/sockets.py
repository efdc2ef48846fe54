"""What both sides of the beacon do with a socket."""

from __future__ import annotations

import socket
import time

from trainer.beacon.messages import LONGEST_LINE


def send(connection: socket.socket, line: bytes, last: bool) -> None:
    """Send a line to a follower, if it is still there; it hears no more after the `last` one."""
    try:
        connection.send(line)
        if last:
            connection.shutdown(socket.SHUT_WR)
    except OSError:
        connection.close()  # it went before us, and needs no telling


def wait_for_close(connection: socket.socket, until: float) -> None:
    """Return when the other side has closed, or at `until` (monotonic seconds)."""
    try:
        while True:
            connection.settimeout(max(0.001, until - time.monotonic()))
            if not connection.recv(LONGEST_LINE):
                return
    except OSError:
        return  # gone, closed by send(), or too slow


def keep_asking(leader: socket.socket) -> None:
    """Let the kernel notice within 30 s that the other side is gone without a word."""
    leader.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    leader.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10)
    leader.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5)
    leader.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4)
