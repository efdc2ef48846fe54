"""Bytes sent to each task, by the kernel's own counts."""

from __future__ import annotations

import socket
import time

import pytest

from trainer.agent.tcp_connections import Connection, Sent, connections, parsed, split


def open_to(address: str) -> list[Connection]:
    return [one for one in connections() if one.address == address]


def test_the_kernel_counts_acknowledged_bytes():
    listening = socket.create_server(("127.0.0.77", 0))
    client = socket.create_connection(listening.getsockname())
    other, _ = listening.accept()
    with listening, client, other:
        before = {one.key: one.sent for one in open_to("127.0.0.77")}
        client.sendall(b"x" * 5000)
        assert len(other.recv(5000, socket.MSG_WAITALL)) == 5000
        until = time.monotonic() + 5
        most = 0
        while most < 5000 and time.monotonic() < until:
            most = max(one.sent - before[one.key] for one in open_to("127.0.0.77"))
        assert 5000 <= most < 5010


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="IPv6 is switched off here")
def test_both_ip_families_are_read_and_mapped_ipv4_addresses_are_ipv4():
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as listening:
        port = listening.getsockname()[1]
        with (
            socket.create_connection(("127.0.0.78", port)),
            socket.create_connection(("::1", port)),
        ):
            others = [listening.accept()[0] for _ in range(2)]
            addresses = [one.address for one in connections()]
            for other in others:
                other.close()
    assert "127.0.0.78" in addresses and "::1" in addresses


def test_closed_connections_stay_counted():
    sent = Sent({"10.0.0.5": "ps-0"})
    assert sent.look([]) == {}
    assert sent.look([Connection(b"a", "10.0.0.5", 100)]) == {"ps-0": 100}
    both = [Connection(b"a", "10.0.0.5", 150), Connection(b"b", "10.0.0.5", 7)]
    assert sent.look(both) == {"ps-0": 157}
    assert sent.look([]) == {"ps-0": 157}
    assert sent.look([Connection(b"c", "10.0.0.5", 3)]) == {"ps-0": 160}


def test_addresses_that_are_no_task_are_not_counted():
    assert Sent({"10.0.0.5": "ps-0"}).look([Connection(b"a", "10.0.0.1", 9)]) == {}


def test_a_truncated_answer_has_no_connection():
    assert parsed(b"\x02" * 40) is None
    assert parsed(b"\x02" * 72 + b"\0\0\0\0") is None
    assert list(split(b"\x01\0\0\0" + bytes(20))) == []
