"""The beacon: heard at once, told from a crash, and bounded when nobody speaks."""

from __future__ import annotations

import threading
import time
from queue import SimpleQueue

import pytest

from trainer.beacon import client
from trainer.beacon.client import BeaconClient, JobEnded, LeaderStopping
from trainer.beacon.heard import HeardAgain, Joined, Left, Silent
from trainer.beacon.messages import Done, Failed, Report
from trainer.beacon.server import BeaconServer
from trainer.errors import ServerError
from trainer.task import Address

pytestmark = pytest.mark.first

REPORT = Report("gpu-missing", "worker-1", "worker-1 was promised GPU 1, sees none")


def listen(address: Address, start_deadline_s: float, lost_after_s: float = 30.0) -> JobEnded:
    """What a follower hears at the end."""
    heard: SimpleQueue[JobEnded] = SimpleQueue()
    BeaconClient(address, "worker-1", start_deadline_s, heard.put, lost_after_s)
    return heard.get(timeout=10)


def wait_for_connection(follower: BeaconClient) -> None:
    until = time.monotonic() + 20
    while not follower.connected:
        assert time.monotonic() < until, "it did not connect in time"
        time.sleep(0.01)


def test_every_follower_hears_the_end_and_nobody_lingers(free_port):
    address = Address("127.0.0.1", free_port())
    heard: SimpleQueue[JobEnded] = SimpleQueue()
    BeaconClient(address, "worker-1", 5, heard.put)
    beacon_server = BeaconServer(address)
    for _ in range(4):
        BeaconClient(address, "worker-1", 5, heard.put)
    time.sleep(0.4)
    began = time.monotonic()
    beacon_server.announce(7)
    assert time.monotonic() - began < 0.4
    assert [heard.get(timeout=1) for _ in range(5)] == [JobEnded(7)] * 5


def test_who_connects_late_hears_it_too(free_port):
    address = Address("127.0.0.1", free_port())
    BeaconServer(address).announce(0)
    assert listen(address, 2) == JobEnded(0)


def test_a_leader_that_never_comes(free_port):
    ended = listen(Address("127.0.0.1", free_port()), 0.3)
    assert ended == JobEnded(None, seen=False)


def test_a_crashed_leader_is_awaited_again(free_port):
    import socket

    address = Address("127.0.0.1", free_port())
    crashed = socket.create_server((address.host, address.port))
    heard: SimpleQueue[JobEnded] = SimpleQueue()
    threading.Thread(target=lambda: heard.put(listen(address, 5)), daemon=True).start()
    follower, _ = crashed.accept()
    follower.close()
    crashed.close()
    time.sleep(0.2)
    beacon_server = BeaconServer(address)
    time.sleep(0.8)
    beacon_server.announce(3)
    assert heard.get(timeout=2) == JobEnded(3)


def test_a_leader_that_stays_away_is_lost(free_port):
    import socket

    address = Address("127.0.0.1", free_port())
    crashed = socket.create_server((address.host, address.port))
    heard: SimpleQueue[JobEnded] = SimpleQueue()
    threading.Thread(
        target=lambda: heard.put(listen(address, 5, lost_after_s=0.4)), daemon=True
    ).start()
    follower, _ = crashed.accept()
    crashed.close()
    follower.close()
    assert heard.get(timeout=20) == JobEnded(None)


def test_a_follower_may_report_before_the_end_and_others_still_hear_it(free_port):
    address = Address("127.0.0.1", free_port())
    reports: SimpleQueue[Report] = SimpleQueue()
    heard: SimpleQueue[JobEnded] = SimpleQueue()
    threading.Thread(target=lambda: client.send_report(address, REPORT, 5), daemon=True).start()
    time.sleep(0.2)
    beacon_server = BeaconServer(
        address, lambda said: reports.put(said) if isinstance(said, Report) else None
    )
    BeaconClient(address, "worker-1", 5, heard.put)
    assert reports.get(timeout=20) == REPORT
    time.sleep(0.2)
    beacon_server.announce(3)
    assert heard.get(timeout=2) == JobEnded(3)


def test_a_report_to_nobody_ends(free_port):
    began = time.monotonic()
    client.send_report(Address("127.0.0.1", free_port()), REPORT, 0.3)
    assert time.monotonic() - began < 2


def test_a_taken_port_is_named(free_port):
    address = Address("127.0.0.1", free_port())
    BeaconServer(address)
    with pytest.raises(ServerError, match=str(address.port)):
        BeaconServer(address)


def test_the_leader_knows_who_is_there_and_how_they_left(free_port):
    address = Address("127.0.0.1", free_port())
    said: SimpleQueue[object] = SimpleQueue()
    BeaconServer(address, said.put)
    followers = {}
    for name in ("worker-1", "worker-2"):
        followers[name] = BeaconClient(address, name, 5, lambda ended: None)
        assert said.get(timeout=20) == Joined(name)
        wait_for_connection(followers[name])
    followers["worker-1"].say(Failed("worker-1", "the shapes\ndo not match"))
    assert said.get(timeout=20) == Left("worker-1", "failed", "the shapes\ndo not match")
    followers["worker-2"].say(Done("worker-2"))
    assert said.get(timeout=20) == Left("worker-2", "done")


def test_a_follower_that_closes_without_a_word_is_lost(free_port):
    import socket

    address = Address("127.0.0.1", free_port())
    said: SimpleQueue[object] = SimpleQueue()
    BeaconServer(address, said.put)
    with socket.create_connection((address.host, address.port)) as follower:
        follower.sendall(b"hello wor")
        time.sleep(0.1)
        follower.sendall(b"ker-3 7f\n")
        assert said.get(timeout=20) == Joined("worker-3")
    assert said.get(timeout=20) == Left("worker-3", "lost")


def test_followers_hear_that_the_leader_is_stopping_before_its_end(free_port):
    address = Address("127.0.0.1", free_port())
    heard: SimpleQueue[object] = SimpleQueue()
    beacon_server = BeaconServer(address)
    follower = BeaconClient(address, "ps-0", 5, heard.put)
    wait_for_connection(follower)
    beacon_server.stopping()
    beacon_server.announce(143)
    assert [heard.get(timeout=20) for _ in range(2)] == [LeaderStopping(), JobEnded(143)]


class Mute:
    """A follower that says hello, and then only what it is told to."""

    def __init__(self, address: Address, task: str, run: str) -> None:
        import socket

        self.socket = socket.create_connection((address.host, address.port))
        self.say(f"hello {task} {run}")

    def say(self, line: str) -> None:
        self.socket.sendall(line.encode() + b"\n")


def test_a_follower_that_is_there_and_says_nothing_is_silent_until_it_speaks(free_port):
    address = Address("127.0.0.1", free_port())
    said: SimpleQueue[object] = SimpleQueue()
    BeaconServer(address, said.put, silent_s=2.5)
    alive = BeaconClient(address, "worker-2", 5, lambda ended: None, silent_s=2.5)
    assert said.get(timeout=20) == Joined("worker-2")
    mute = Mute(address, "worker-1", "7f")
    assert said.get(timeout=20) == Joined("worker-1")
    seconds = []
    while not seconds or seconds[-1] < 3.4:
        silent = said.get(timeout=20)
        assert isinstance(silent, Silent) and silent.task == "worker-1", silent
        seconds.append(silent.seconds)
    assert seconds[0] < 4.6
    mute.say("beat")
    while isinstance(again := said.get(timeout=20), Silent):
        pass
    assert isinstance(again, HeardAgain) and again.task == "worker-1"
    assert again.seconds == pytest.approx(seconds[-1], abs=1.5)
    assert alive.connected


def test_the_same_run_on_a_new_connection_was_never_lost_and_a_new_run_was(free_port):
    address = Address("127.0.0.1", free_port())
    said: SimpleQueue[object] = SimpleQueue()
    BeaconServer(address, said.put)
    first = Mute(address, "worker-1", "aa")
    assert said.get(timeout=20) == Joined("worker-1")
    second = Mute(address, "worker-1", "aa")
    second.say("failed worker-1 on the second connection")
    assert said.get(timeout=20) == Left("worker-1", "failed", "on the second connection")
    first.socket.close()
    cut_off = Mute(address, "worker-1", "aa")
    assert said.get(timeout=20) == Joined("worker-1")
    # The old one is cut off: nobody can say that it is gone, but its successor is there.
    third = Mute(address, "worker-1", "bb")
    assert said.get(timeout=20) == Left("worker-1", "lost")
    assert said.get(timeout=20) == Joined("worker-1")
    cut_off.socket.close()
    third.socket.close()
    assert said.get(timeout=20) == Left("worker-1", "lost")


def test_a_leader_that_says_nothing_is_lost_in_time(free_port):
    import socket

    frozen = socket.create_server(("127.0.0.1", free_port()))
    address = Address("127.0.0.1", frozen.getsockname()[1])
    heard: SimpleQueue[JobEnded] = SimpleQueue()
    BeaconClient(address, "worker-1", 5, heard.put, lost_after_s=3.0, silent_s=1.5)
    connection, _ = frozen.accept()
    began = time.monotonic()
    frozen.close()
    assert heard.get(timeout=20) == JobEnded(None)
    assert 2.5 < time.monotonic() - began < 8
    connection.close()
