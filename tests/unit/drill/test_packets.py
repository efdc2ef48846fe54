"""The process to which the kernel hands packets: its decision for each."""

from __future__ import annotations

import itertools
import socket
import struct
from collections.abc import Callable, Iterator
from types import SimpleNamespace

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


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reading of the clock advances it by 5 ms, however busy the machine is."""
    ticks = itertools.count(0.0, 0.005)
    monkeypatch.setattr(packets, "time", SimpleNamespace(monotonic=ticks.__next__))
    monkeypatch.setattr(packets, "LOOK_S", 0.02)


def looks(number: int) -> Callable[[], bool]:
    """Continue for this number of reads."""
    left = iter([True] * number)
    return lambda: next(left, False)


def verdicts(kernel: socket.socket) -> list[tuple[int, int, int]]:
    """Returns (message, verdict, packet) of each verdict so far."""
    found = []
    while True:
        try:
            data = kernel.recv(4096)
        except BlockingIOError:
            return found
        kind = struct.unpack_from("=H", data, 4)[0]
        found.append((kind, *struct.unpack_from("!II", data, 24)))


def test_packets_are_distinguished() -> None:
    other = packets.message(packets.CONFIG, 0)
    assert packets.packets_in(packet(7) + other + packet(8)) == [7, 8]


def test_all_are_lost_or_none(pair: Pair) -> None:
    kernel, process = pair
    kernel.send(packet(1))
    packets.hold(process, 1.0, 0.0, looks(1))
    kernel.send(packet(2))
    packets.hold(process, 0.0, 0.0, looks(1))
    assert verdicts(kernel) == [(packets.VERDICT, 0, 1), (packets.VERDICT, 1, 2)]


def test_delayed_packets_pass_in_batches_and_not_too_early(pair: Pair) -> None:
    kernel, process = pair
    kernel.send(packet(1) + packet(2))
    packets.hold(process, 0.0, 0.3, looks(2))
    assert verdicts(kernel) == []
    kernel.send(packet(3) + packet(4))
    packets.hold(process, 0.0, 0.01, looks(4))
    assert verdicts(kernel) == [(packets.VERDICTS, 1, 4)]


def test_the_rules_name_the_other_end_in_each_direction() -> None:
    messages = packets.table([packets.INPUT, packets.OUTPUT], ["10.0.0.5"], b"")
    address = socket.inet_aton("10.0.0.5")
    assert len(messages) == 5
    assert [address in message for message in messages] == [False, False, True, False, True]
    assert all(len(message) % 4 == 0 for message in messages)


def test_the_rules_fall_back_to_the_queue_target_of_older_kernels() -> None:
    assert b"queue\0" in packets.to_queue(natively=True)
    assert b"NFQUEUE\0" in packets.to_queue(natively=False)


def test_errors_of_the_kernel_are_raised(pair: Pair) -> None:
    kernel, process = pair
    answer = struct.pack("=IHHIIi", 36, packets.ERROR, 0, 1, 0, -1)
    kernel.send(answer + b"\0" * 16)
    with pytest.raises(PermissionError):
        packets.confirm(process)
