"""The beacon: all followers receive the end, and the leader receives the followers' messages."""

from __future__ import annotations

import socket
import threading
import time
from queue import SimpleQueue

import pytest
from ended import beacons_end, leaders
from followers import SECRET, accept, listen, secret, wait_for_connection

from trainer.agent.beacon import client, server
from trainer.agent.beacon.client import BeaconClient, JobEnded, LeaderStopping
from trainer.agent.beacon.messages import Done, Failed, Joined, Left, Report
from trainer.agent.beacon.server import BeaconServer
from trainer.agent.errors import ServerError
from trainer.agent.task import Address

__all__ = ["beacons_end", "leaders"]
pytestmark = pytest.mark.first

REPORT = Report("gpu-missing", "worker-1", "worker-1 was promised GPU 1, sees none")


def test_every_follower_receives_the_end_and_no_thread_is_left(free_port, monkeypatch):
    monkeypatch.setattr(server, "LINGER_S", 60.0)
    address = Address("127.0.0.1", free_port())
    heard: SimpleQueue[JobEnded] = SimpleQueue()
    followers = [BeaconClient(address, secret, "worker-1", 5, heard.put)]
    beacon_server = BeaconServer(address, SECRET)
    followers += [BeaconClient(address, secret, "worker-1", 5, heard.put) for _ in range(4)]
    for follower in followers:
        wait_for_connection(follower)
    began = time.monotonic()
    beacon_server.announce(7)
    assert time.monotonic() - began < 30
    assert [heard.get(timeout=20) for _ in range(5)] == [JobEnded(7)] * 5


def test_a_late_follower_receives_the_end_too(free_port):
    address = Address("127.0.0.1", free_port())
    BeaconServer(address, SECRET).announce(0)
    assert listen(address, 20) == JobEnded(0)


def test_a_leader_that_never_starts(free_port):
    ended = listen(Address("127.0.0.1", free_port()), 0.3)
    assert ended == JobEnded(None, seen=False)


def test_a_follower_may_report_before_the_end_and_others_still_receive_it(free_port):
    address = Address("127.0.0.1", free_port())
    reports: SimpleQueue[Report] = SimpleQueue()
    heard: SimpleQueue[JobEnded] = SimpleQueue()
    threading.Thread(
        target=lambda: client.send_report(address, secret, REPORT, 5), daemon=True
    ).start()
    time.sleep(0.2)
    beacon_server = BeaconServer(
        address, SECRET, lambda output: reports.put(output) if isinstance(output, Report) else None
    )
    BeaconClient(address, secret, "worker-1", 5, heard.put)
    assert reports.get(timeout=20) == REPORT
    time.sleep(0.2)
    beacon_server.announce(3)
    assert heard.get(timeout=20) == JobEnded(3)


def test_a_report_without_a_listener_ends(free_port):
    began = time.monotonic()
    client.send_report(Address("127.0.0.1", free_port()), secret, REPORT, 0.3)
    assert time.monotonic() - began < 10


def test_a_port_in_use_is_named(free_port):
    address = Address("127.0.0.1", free_port())
    BeaconServer(address, SECRET)
    with pytest.raises(ServerError, match=str(address.port)):
        BeaconServer(address, SECRET)


def test_the_leader_knows_its_followers_and_how_they_left(free_port):
    address = Address("127.0.0.1", free_port())
    output: SimpleQueue[object] = SimpleQueue()
    BeaconServer(address, SECRET, output.put)
    followers = {}
    for name in ("worker-1", "worker-2"):
        followers[name] = BeaconClient(address, secret, name, 5, lambda ended: None)
        assert output.get(timeout=20) == Joined(name)
        wait_for_connection(followers[name])
    followers["worker-1"].say(Failed("worker-1", "the shapes\ndo not match"))
    assert output.get(timeout=20) == Left("worker-1", "failed", "the shapes\ndo not match")
    followers["worker-2"].say(Done("worker-2"))
    assert output.get(timeout=20) == Left("worker-2", "done")


def test_followers_are_informed_that_the_leader_is_stopping(free_port):
    address = Address("127.0.0.1", free_port())
    heard: SimpleQueue[object] = SimpleQueue()
    beacon_server = BeaconServer(address, SECRET)
    follower = BeaconClient(address, secret, "ps-0", 5, heard.put)
    wait_for_connection(follower)
    beacon_server.stopping()
    beacon_server.announce(143)
    assert [heard.get(timeout=20) for _ in range(2)] == [LeaderStopping(), JobEnded(143)]


def test_a_follower_beats_with_its_leader_and_also_without_it():
    """A beat of its own only if none of the leader's has arrived for a while."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = Address("127.0.0.1", listening.getsockname()[1])
        BeaconClient(address, secret, "worker-1", 20, lambda _: None, silent_s=10)
        leader = accept(listening)
    with leader, leader.makefile("rb") as said:
        assert said.readline().startswith(b"hello worker-1 ")
        leader.settimeout(20)
        time.sleep(client.SOON_S * 1.2)
        asked = time.monotonic()
        leader.sendall(b"beat\n")
        assert said.readline().startswith(b"beat ")
        assert time.monotonic() - asked < client.BEAT_S, "it waited for its own time"
        leader.sendall(b"beat\n" * 3)
        again = time.monotonic()
        assert said.readline().startswith(b"beat ")
        assert time.monotonic() - again > client.SOON_S, "more often than it must"


def test_a_follower_hears_of_the_end_though_it_cannot_read_its_usage(free_port, monkeypatch):
    asked: SimpleQueue[None] = SimpleQueue()

    def unreadable() -> None:
        asked.put(None)
        raise IndexError

    monkeypatch.setattr(client, "read_usage", unreadable)
    heard: SimpleQueue[JobEnded] = SimpleQueue()
    address = Address("127.0.0.1", free_port())
    beacon_server = BeaconServer(address, SECRET)
    wait_for_connection(BeaconClient(address, secret, "worker-1", 20, heard.put))
    asked.get(timeout=20)
    beacon_server.announce(0)
    assert heard.get(timeout=20) == JobEnded(0)
