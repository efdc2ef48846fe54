"""Counts the bytes that were sent to each other task, from the kernel's counts by connection.

The kernel's table of TCP connections is read over netlink (sock_diag(7)), which needs no privilege
in the container's own network. `struct tcp_info` of linux/tcp.h has the counts.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

SOCK_DIAG, TCP_OF_BOTH_FAMILIES = 4, 18
"""For each answer the kernel searches the connections of the whole machine. So the older request,
TCPDIAG_GETSOCK of linux/inet_diag.h, is used: one answer has both IPv4 and IPv6.
"""
REQUEST, ERROR, DONE = 0x301, 2, 3
"""The flags of a request for a whole table; the types of message that end the answer."""
ESTABLISHED = 1 << 1
INFO = 2
"""The attribute that contains a tcp_info."""
HEADER, ANSWER = struct.Struct("=IHHII"), 72
ACKNOWLEDGED = 120
"""The offset of tcpi_bytes_acked in tcp_info: since Linux 4.1."""
MAPPED = b"\0" * 10 + b"\xff\xff"
LONGEST_ANSWER = 1 << 16
PATIENCE_S = 1.0


@dataclass(frozen=True)
class Connection:
    """An open connection: its key, the other side's address, and the acknowledged bytes."""

    key: bytes
    address: str
    sent: int


class Sent:
    """Bytes sent to each task since this object was created, including closed connections.

    Args:
        tasks: the tasks' names by IP address.
    """

    def __init__(self, tasks: Mapping[str, str]) -> None:
        self._tasks = tasks
        self._counted: dict[bytes, int] = {}
        self._total: dict[str, int] = {}

    def look(self, connections: Iterable[Connection]) -> dict[str, int]:
        """The bytes by task, after reading the connections that are open now."""
        counted: dict[bytes, int] = {}
        for one in connections:
            if task := self._tasks.get(one.address):
                more = one.sent - self._counted.get(one.key, 0)
                self._total[task] = self._total.get(task, 0) + max(more, 0)
                counted[one.key] = one.sent
        self._counted = counted
        return dict(self._total)


def connections() -> list[Connection]:
    """The established connections of this container; [] if the kernel does not list them."""
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, SOCK_DIAG) as kernel:
            kernel.settimeout(PATIENCE_S)
            return list(_asked(kernel))
    except OSError:
        return []


def _asked(kernel: socket.socket) -> Iterator[Connection]:
    body = struct.pack("=xxxB48xII", 1 << (INFO - 1), ESTABLISHED, 0)  # of any address
    head = HEADER.pack(HEADER.size + len(body), TCP_OF_BOTH_FAMILIES, REQUEST, 0, 0)
    kernel.send(head + body)
    while True:
        messages = list(split(kernel.recv(LONGEST_ANSWER)))
        for kind, message in messages:
            if kind in (DONE, ERROR):
                return
            if connection := parsed(message):
                yield connection


def split(answer: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields (kind, message without its header) of each message of an answer."""
    at = 0
    while at + HEADER.size <= len(answer):
        length, kind, *_ = HEADER.unpack_from(answer, at)
        if length < HEADER.size:
            return
        yield kind, answer[at + HEADER.size : at + length]
        at += (length + 3) & ~3


def parsed(message: bytes) -> Connection | None:
    """The connection of an inet_diag_msg; None if it has no counts."""
    if len(message) < ANSWER:
        return None
    octets = message[24:40] if message[0] == socket.AF_INET6 else message[24:28]
    if octets.startswith(MAPPED):
        octets = octets[len(MAPPED) :]
    family = socket.AF_INET if len(octets) == 4 else socket.AF_INET6
    at = ANSWER
    while at + 4 <= len(message):
        length, kind = struct.unpack_from("=HH", message, at)
        if length < 4:
            return None
        if kind == INFO and length >= 4 + ACKNOWLEDGED + 8:
            (sent,) = struct.unpack_from("=Q", message, at + 4 + ACKNOWLEDGED)
            return Connection(message[44:52], socket.inet_ntop(family, octets), sent)
        at += (length + 3) & ~3
    return None
