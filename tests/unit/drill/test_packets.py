"""The process to which the kernel hands packets: what becomes of each."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Iterator

import pytest

from cluster_kit.drill.inside import packets

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    """The kernel's end, and the process's."""
    kernel, process = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    kernel.setblocking(False)
    with kernel, process:
        yield kernel, process


def packet(number: int) -> bytes:
    header = struct.pack("!IHBx", number, 0x0800, 1)
    return packets.message(packets.PACKET, 0, packets.attribute(1, header))


def for_a_while(seconds: float) -> Callable[[], bool]:
    end = time.monotonic() + seconds
    return lambda: time.monotonic() < end


def verdicts(kernel: socket.socket) -> list[tuple[int, int, int]]:
    """(message, verdict, packet) of each that was sent so far."""
    found = []
    while True:
        try:
            data = kernel.recv(4096)
        except BlockingIOError:
            return found
        kind = struct.unpack_from("=H", data, 4)[0]
        found.append((kind, *struct.unpack_from("!II", data, 24)))


def test_packets_are_told_apart() -> None:
    other = packets.message(packets.CONFIG, 0)
    assert packets.packets_in(packet(7) + other + packet(8)) == [7, 8]


def test_all_are_lost_or_none(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, process = pair
    monkeypatch.setattr(packets, "LOOK_S", 0.05)
    kernel.send(packet(1))
    packets.hold(process, 1.0, 0.0, for_a_while(0.01))
    kernel.send(packet(2))
    packets.hold(process, 0.0, 0.0, for_a_while(0.01))
    assert verdicts(kernel) == [(packets.VERDICT, 0, 1), (packets.VERDICT, 1, 2)]


def test_delayed_ones_pass_together_and_not_earlier(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel, process = pair
    monkeypatch.setattr(packets, "LOOK_S", 0.02)
    kernel.send(packet(1) + packet(2))
    packets.hold(process, 0.0, 0.3, for_a_while(0.05))
    assert verdicts(kernel) == []
    kernel.send(packet(3) + packet(4))
    packets.hold(process, 0.0, 0.01, for_a_while(0.2))
    last = verdicts(kernel)[-1]
    assert last == (packets.VERDICTS, 1, 4)


def test_the_rules_name_the_other_end_in_each_direction() -> None:
    messages = packets.table([packets.INPUT, packets.OUTPUT], ["10.0.0.5"], b"")
    address = socket.inet_aton("10.0.0.5")
    assert len(messages) == 5
    assert [address in message for message in messages] == [False, False, True, False, True]
    assert all(len(message) % 4 == 0 for message in messages)


def test_some_kernels_have_the_queue_as_a_target_only() -> None:
    assert b"queue\0" in packets.to_queue(natively=True)
    assert b"NFQUEUE\0" in packets.to_queue(natively=False)


def test_what_the_kernel_refuses_is_raised(pair: Pair) -> None:
    kernel, process = pair
    answer = struct.pack("=IHHIIi", 36, packets.ERROR, 0, 1, 0, -1)
    kernel.send(answer + b"\0" * 16)
    with pytest.raises(PermissionError):
        packets.confirm(process)
