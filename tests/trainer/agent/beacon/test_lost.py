"""Lost or silent: leaders and followers that have ended, are cut off, or are frozen."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from queue import SimpleQueue

import pytest
from ended import beacons_end, leaders
from followers import SECRET, Mute, accept, joined, listen, secret

from trainer.agent.beacon import server
from trainer.agent.beacon.client import BeaconClient, JobEnded
from trainer.agent.beacon.messages import HeardAgain, Joined, Left, Silent, Unanswered
from trainer.agent.beacon.server import BeaconServer
from trainer.agent.task import Address

__all__ = ["beacons_end", "leaders"]
pytestmark = pytest.mark.first


def test_followers_wait_for_a_crashed_leader_to_return(free_port):
    address = Address("127.0.0.1", free_port())
    crashed = socket.create_server((address.host, address.port))
    heard: SimpleQueue[JobEnded] = SimpleQueue()
    threading.Thread(target=lambda: heard.put(listen(address, 5)), daemon=True).start()
    follower = accept(crashed)
    follower.close()
    crashed.close()
    time.sleep(0.2)
    beacon_server = BeaconServer(address, SECRET)
    time.sleep(0.8)
    beacon_server.announce(3)
    assert heard.get(timeout=20) == JobEnded(3)


def test_a_leader_that_does_not_return_is_lost(free_port):
    address = Address("127.0.0.1", free_port())
    crashed = socket.create_server((address.host, address.port))
    heard: SimpleQueue[JobEnded] = SimpleQueue()
    threading.Thread(
        target=lambda: heard.put(listen(address, 5, lost_after_s=0.4)), daemon=True
    ).start()
    follower = accept(crashed)
    crashed.close()
    follower.close()
    assert heard.get(timeout=20) == JobEnded(None)


def test_a_follower_that_closes_without_a_message_is_lost(free_port):
    address = Address("127.0.0.1", free_port())
    output: SimpleQueue[object] = SimpleQueue()
    BeaconServer(address, SECRET, output.put)
    with joined(address) as follower:
        follower.sendall(b"hello wor")
        time.sleep(0.1)
        follower.sendall(b"ker-3 7f\n")
        assert output.get(timeout=20) == Joined("worker-3")
    assert output.get(timeout=20) == Left("worker-3", "lost")


class Clock:
    """A leader's clock, which the test advances."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


def test_a_connected_follower_without_heartbeats_is_silent_until_it_sends_one(
    free_port, monkeypatch
):
    clock = Clock()
    monkeypatch.setattr(server, "time", clock)
    address = Address("127.0.0.1", free_port())
    output: SimpleQueue[object] = SimpleQueue()
    BeaconServer(address, SECRET, output.put, silent_s=2.5)
    alive, mute = Mute(address, "worker-2", "7e"), Mute(address, "worker-1", "7f")
    assert {output.get(timeout=20), output.get(timeout=20)} == {
        Joined("worker-1"),
        Joined("worker-2"),
    }

    def second() -> list[object]:
        """Returns what the leader reports while a second passes in which one follower sends two
        messages: the first wakes the leader, and it reads the second after it has looked at its
        clock."""
        clock.now += 1
        heard = []
        for _ in range(2):
            alive.say("unanswered ps-0 1")
            while (word := output.get(timeout=20)) != Unanswered("ps-0", "worker-2", 1.0):
                heard.append(word)
        return heard

    assert [second(), second()] == [[], []]
    assert second() == [Silent("worker-1", 3.0)]
    assert second() == [Silent("worker-1", 4.0)]
    mute.say("beat")
    assert output.get(timeout=20) == HeardAgain("worker-1", 4.0)
    assert second() == []


def test_leader_and_follower_send_heartbeats(free_port):
    address = Address("127.0.0.1", free_port())
    with contextlib.closing(socket.create_server((address.host, address.port))) as leader:
        BeaconClient(address, secret, "worker-1", 5, lambda ended: None)
        follower = accept(leader)
    follower.settimeout(20)
    with follower, follower.makefile("rb") as lines:
        assert lines.readline().startswith(b"hello worker-1 ")
        assert lines.readline().startswith(b"beat ")
    address = Address("127.0.0.1", free_port())
    BeaconServer(address, SECRET)
    mute = Mute(address, "worker-1", "7f")
    mute.socket.settimeout(20)
    with mute.socket, mute.socket.makefile("rb") as lines:
        assert lines.readline() == b"beat\n"


def test_a_new_connection_of_the_same_run_was_never_lost_but_a_new_run_was(free_port):
    address = Address("127.0.0.1", free_port())
    output: SimpleQueue[object] = SimpleQueue()
    BeaconServer(address, SECRET, output.put)
    first = Mute(address, "worker-1", "aa")
    assert output.get(timeout=20) == Joined("worker-1")
    second = Mute(address, "worker-1", "aa")
    second.say("failed worker-1 on the second connection")
    assert output.get(timeout=20) == Left("worker-1", "failed", "on the second connection")
    first.socket.close()
    cut_off = Mute(address, "worker-1", "aa")
    assert output.get(timeout=20) == Joined("worker-1")
    # The old connection is cut off: nothing reports its end, but its successor is connected.
    third = Mute(address, "worker-1", "bb")
    assert output.get(timeout=20) == Left("worker-1", "lost")
    assert output.get(timeout=20) == Joined("worker-1")
    cut_off.socket.close()
    third.socket.close()
    assert output.get(timeout=20) == Left("worker-1", "lost")


def test_a_leader_without_heartbeats_is_lost_in_time(free_port):
    frozen = socket.create_server(("127.0.0.1", free_port()))
    address = Address("127.0.0.1", frozen.getsockname()[1])
    heard: SimpleQueue[JobEnded] = SimpleQueue()
    BeaconClient(address, secret, "worker-1", 5, heard.put, lost_after_s=3.0, silent_s=1.5)
    connection = accept(frozen)
    began = time.monotonic()
    frozen.close()
    assert heard.get(timeout=20) == JobEnded(None)
    assert 2.5 < time.monotonic() - began < 20
    connection.close()
