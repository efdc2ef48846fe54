"""Finds peers that do not answer this task, in the kernel's tables of connections."""

from __future__ import annotations

import socket
import sys

import pytest

from trainer.agent.beacon.client import (
    GAP_S,
    UnansweredTasks,
    address_of,
    read_counts,
    read_tables,
    retransmitted_to,
    timeouts_in,
)

HEADER = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid"
PS = "0500000A:08AE"
MAPPED = f"0000000000000000FFFF0000{PS}"
little = pytest.mark.skipif(sys.byteorder != "little", reason="the rows are of such a machine")


def table(*rows: tuple[str, str, int]) -> str:
    """Returns the kernel's table with rows of (remote address, state, retransmissions)."""
    lines = [
        f"   {n}: 0200000A:9C40 {remote} {state} 00000010:00000000 01:00000014 {again:08X}     0"
        "        0 110 2 0000000031b0ad18 100 0 0 10 0"
        for n, (remote, state, again) in enumerate(rows)
    ]
    return "\n".join([HEADER, *lines]) + "\n"


ASKED, FINE = table((PS, "01", 3)), table((PS, "01", 0))


@little
def test_only_retransmissions_count():
    rows = [("0600000A:08AE", "01", 0), (PS, "01", 1), ("0700000A:08AE", "02", 2),
            ("0800000A:08AE", "06", 5)]  # fmt: skip
    assert retransmitted_to(table(*rows)) == {"10.0.0.5:2222", "10.0.0.7:2222"}


@little
def test_dual_stack_and_ipv6_sockets():
    assert retransmitted_to(table((MAPPED, "02", 1))) == {"10.0.0.5:2222"}
    assert address_of("000000FD000000000000000005000000:08AE") == "[fd00::5]:2222"


@little
def test_seconds_add_up_over_retransmissions_and_the_pause_before_the_next_connection():
    watch = UnansweredTasks({"10.0.0.5:2222": "ps-0"})
    watch.look(100.0, [FINE])
    seconds = [watch.look(101.0 + n, [ASKED]).get("ps-0") for n in range(9)]
    assert seconds == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert watch.look(110.0, [""]) == {}
    assert watch.look(112.0, [ASKED]) == {"ps-0": 12}


@little
def test_an_answer_resets_the_count():
    watch = UnansweredTasks({"10.0.0.5:2222": "ps-0"})
    for n in range(5):
        watch.look(100.0 + n, [ASKED])
    for n in range(int(GAP_S) + 2):
        assert watch.look(105.0 + n, [FINE]) == {}
    assert watch.look(111.0, [ASKED]) == {"ps-0": 1}


@little
def test_a_task_that_was_frozen_itself_blames_no_other():
    watch = UnansweredTasks({"10.0.0.5:2222": "ps-0"})
    watch.look(100.0, [ASKED])
    assert watch.look(160.0, [ASKED])["ps-0"] <= 4


@little
def test_other_connections_of_the_program_do_not_count():
    watch = UnansweredTasks({"10.0.0.6:2222": "ps-1"})
    assert [watch.look(100.0 + n, [ASKED]) for n in range(3)] == [{}, {}, {}]


@little
def test_the_tables_are_read_only_while_a_connection_waits_in_vain():
    """Because reading them takes 10 ms of each second of CPU time, in every task."""
    watch = UnansweredTasks({"10.0.0.5:2222": "ps-0"})
    watch.needs_tables(7)
    assert not watch.needs_tables(7)
    assert watch.needs_tables(8)
    watch.look(100.0, [ASKED])
    assert watch.needs_tables(8), "the kernel repeats ever less often"
    watch.look(101.0 + GAP_S, [FINE])
    assert not watch.needs_tables(8)


def test_they_are_read_if_the_kernel_does_not_count():
    watch = UnansweredTasks({})
    assert [watch.needs_tables(None) for _ in range(3)] == [True, True, True]
    assert timeouts_in("") is None
    assert timeouts_in("TcpExt: Cookies TCPTimeouts\nTcpExt: 0 41\nIpExt: A\nIpExt: 1\n") == 41


def test_the_counts_of_this_machine_can_be_read():
    assert timeouts_in(read_counts()) is not None


def test_the_tables_of_this_machine_can_be_read():
    server = socket.create_server(("127.0.0.1", 0))
    tables = read_tables()
    server.close()
    assert tables
    for text in tables:
        retransmitted_to(text)
