"""Delays or drops the packets between this network namespace and some addresses, for some time.

The kernel passes each such packet to this process (nfnetlink_queue), which releases it later or
drops it: this needs neither netem nor a change of the interface's queue. Ends by itself: after
its time, at SIGTERM, or when the interface is gone; if it is killed, all packets pass again.

Prints "ready" as soon as it is in force, or why it cannot be. Its argument is a JSON object:
`peers` (IPv4 addresses), `seconds` (null for good), `loss` (0 to 1), `delay` (seconds).
"""

from __future__ import annotations

import errno
import json
import os
import random
import select
import signal
import socket
import struct
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

NETLINK_NETFILTER = 12
REQUEST, ACK, CREATE = 0x1, 0x4, 0x400
ERROR = 2
NFTABLES, QUEUE = 10 << 8, 3 << 8
BATCH_BEGIN, BATCH_END = 0x10, 0x11
NEW_TABLE, DEL_TABLE, NEW_CHAIN, NEW_RULE = (NFTABLES | number for number in (0, 2, 3, 6))
PACKET, VERDICT, CONFIG, VERDICTS = (QUEUE | number for number in range(4))
IPV4, NESTED = 2, 0x8000
DROP, ACCEPT = 0, 1
NUMBER = random.randrange(1, 1 << 16)
"""The number of this process's queue; several faults may be in force at once."""
NAME = b"cluster-kit-%d\0" % NUMBER
INPUT, OUTPUT = (b"input\0", 1, 12), (b"output\0", 3, 16)
"""The chains: name, hook, and the offset of the other end's address in the IP header."""
LONGEST_QUEUE, BUFFER_BYTES = 1 << 16, 32 << 20
LOOK_S = 0.5


def attribute(kind: int, data: bytes) -> bytes:
    """A netlink attribute, padded."""
    return struct.pack("=HH", len(data) + 4, kind) + data + b"\0" * (-len(data) % 4)


def nested(kind: int, *inner: bytes) -> bytes:
    return attribute(kind | NESTED, b"".join(inner))


def number(kind: int, value: int) -> bytes:
    return attribute(kind, struct.pack("!I", value))


def message(kind: int, flags: int, body: bytes = b"", family: int = IPV4, about: int = 0) -> bytes:
    """A message of nfnetlink; `about` is its resource: a subsystem, or a queue."""
    body = struct.pack("!BBH", family, 0, about) + body
    return struct.pack("=IHHII", len(body) + 16, kind, flags | REQUEST, 1, 0) + body


def expression(name: bytes, *attributes: bytes) -> bytes:
    return nested(1, attribute(1, name + b"\0"), nested(2, *attributes))


def to_queue(*, natively: bool) -> bytes:
    """The rule that sends packets to the queue; they pass if no process reads it.

    Some kernels have only the xt target.
    """
    if natively:
        flags = (attribute(kind, struct.pack("!H", v)) for kind, v in ((1, NUMBER), (2, 1), (3, 1)))
        return expression(b"queue", *flags)
    info = struct.pack("=HHHxx", NUMBER, 1, 1)
    return expression(b"target", attribute(1, b"NFQUEUE\0"), number(2, 3), attribute(3, info))


def rule(chain: bytes, offset: int, address: str, verdict: bytes) -> bytes:
    """The rule that applies the verdict to packets from or to this address."""
    load = expression(b"payload", number(1, 1), number(2, 1), number(3, offset), number(4, 4))
    value = nested(3, attribute(1, socket.inet_aton(address)))
    compare = expression(b"cmp", number(1, 1), number(2, 0), value)
    body = attribute(1, NAME) + attribute(2, chain) + nested(4, load, compare, verdict)
    return message(NEW_RULE, CREATE | ACK | 0x800, body)


def table(chains: list[tuple[bytes, int, int]], peers: list[str], verdict: bytes) -> list[bytes]:
    """The messages that create the table."""
    messages = [message(NEW_TABLE, CREATE | ACK, attribute(1, NAME))]
    for name, hook, offset in chains:
        place = nested(4, number(1, hook), number(2, 0))
        body = attribute(1, NAME) + attribute(3, name) + place + attribute(7, b"filter\0")
        messages.append(message(NEW_CHAIN, CREATE | ACK, body))
        messages += [rule(name, offset, peer, verdict) for peer in peers]
    return messages


def ask(messages: list[bytes], *, batch: bool) -> None:
    """Send messages; raises OSError with the kernel's answer if it refuses one of them."""
    edges = [message(kind, 0, family=0, about=10) for kind in (BATCH_BEGIN, BATCH_END)]
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER) as kernel:
        kernel.settimeout(5)
        kernel.send(b"".join([edges[0], *messages, edges[1]] if batch else messages))
        for _ in messages:
            confirm(kernel)


def confirm(kernel: socket.socket) -> None:
    """Read the next answer; raises OSError if it reports an error."""
    reply = kernel.recv(65536)
    kind, code = struct.unpack_from("=H", reply, 4)[0], struct.unpack_from("=i", reply, 16)[0]
    if kind == ERROR and code:
        raise OSError(-code, os.strerror(-code))


def listening() -> socket.socket:
    """A socket that receives the queue's packets: only their numbers, and unsegmented."""
    kernel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER)
    kernel.settimeout(5)
    bound = attribute(1, struct.pack("!BxH", 1, socket.AF_INET))
    numbers_only = attribute(2, struct.pack("!IB", 0, 1))
    whole = number(4, 4) + number(5, 4)
    for body in (bound, numbers_only + number(3, LONGEST_QUEUE) + whole):
        kernel.send(message(CONFIG, ACK, body, about=NUMBER))
        confirm(kernel)
    kernel.setsockopt(socket.SOL_SOCKET, 33, BUFFER_BYTES)  # SO_RCVBUFFORCE
    kernel.setsockopt(270, 5, 1)  # NETLINK_NO_ENOBUFS: packets that do not fit are lost
    kernel.setblocking(False)
    return kernel


def packets_in(data: bytes) -> list[int]:
    """The numbers of the packets in a message."""
    packets, start = [], 0
    while start + 16 <= len(data):
        length, kind = struct.unpack_from("=IH", data, start)
        if kind == PACKET:  # the first attribute is the header: its number comes first
            packets.append(struct.unpack_from("!I", data, start + 24)[0])
        start += (length + 3) & ~3
    return packets


def judge(kernel: socket.socket, kind: int, packet: int, verdict: int) -> None:
    body = attribute(2, struct.pack("!II", verdict, packet))
    kernel.send(message(kind, 0, body, about=NUMBER))


def hold(kernel: socket.socket, loss: float, delay: float, goes_on: Callable[[], bool]) -> None:
    """Drop and delay packets until the fault ends."""
    waiting: deque[tuple[float, int]] = deque()
    look = 0.0
    while (now := time.monotonic()) < look or goes_on():
        look = look if now < look else now + LOOK_S
        due = min(waiting[0][0] if waiting else look, look)
        if select.select([kernel], [], [], max(0.0, due - now))[0]:
            for packet in packets_in(kernel.recv(1 << 20)):
                if loss and random.random() < loss:
                    judge(kernel, VERDICT, packet, DROP)
                elif delay:
                    waiting.append((time.monotonic() + delay, packet))
                else:
                    judge(kernel, VERDICT, packet, ACCEPT)
        last, now = None, time.monotonic()
        while waiting and waiting[0][0] <= now:
            last = waiting.popleft()[1]
        if last is not None:
            judge(kernel, VERDICTS, last, ACCEPT)


def has_network() -> bool:
    return len(Path("/proc/net/dev").read_text().splitlines()) > 3


def main(options: dict[str, Any]) -> None:
    delay, loss, seconds = options["delay"], options["loss"], options["seconds"]
    chains = [INPUT] if delay else [INPUT, OUTPUT]
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: stopped.append(number))
    kernel = listening()
    try:
        ask(table(chains, options["peers"], to_queue(natively=True)), batch=True)
    except OSError as problem:
        if problem.errno != errno.ENOENT:
            raise
        ask(table(chains, options["peers"], to_queue(natively=False)), batch=True)
    print("ready", flush=True)
    end = None if seconds is None else time.monotonic() + seconds

    def goes_on() -> bool:
        return not stopped and has_network() and (end is None or time.monotonic() < end)

    hold(kernel, loss, delay, goes_on)
    ask([message(DEL_TABLE, ACK, attribute(1, NAME))], batch=True)


if __name__ == "__main__":
    try:
        main(json.loads(sys.argv[1]))
    except OSError as problem:
        print(f"{problem.strerror or problem}", flush=True)
