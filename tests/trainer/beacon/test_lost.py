"""Who is lost and who is only silent: leaders and followers that are away, cut off, or frozen."""

from __future__ import annotations

import socket
import threading
import time
from queue import SimpleQueue

import pytest
from ended import beacons_end, leaders
from followers import SECRET, Mute, accept, joined, listen, secret

from trainer.beacon.client import BeaconClient, JobEnded
from trainer.beacon.heard import HeardAgain, Joined, Left, Silent
from trainer.beacon.server import BeaconServer
from trainer.task import Address

__all__ = ["beacons_end", "leaders"]
pytestmark = pytest.mark.first


def test_a_crashed_leader_is_awaited_again(free_port):
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
    assert heard.get(timeout=2) == JobEnded(3)


def test_a_leader_that_stays_away_is_lost(free_port):
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


def test_a_follower_that_closes_without_a_word_is_lost(free_port):
    address = Address("127.0.0.1", free_port())
    said: SimpleQueue[object] = SimpleQueue()
    BeaconServer(address, SECRET, said.put)
    with joined(address) as follower:
        follower.sendall(b"hello wor")
        time.sleep(0.1)
        follower.sendall(b"ker-3 7f\n")
        assert said.get(timeout=20) == Joined("worker-3")
    assert said.get(timeout=20) == Left("worker-3", "lost")


def test_a_follower_that_is_there_and_says_nothing_is_silent_until_it_speaks(free_port):
    address = Address("127.0.0.1", free_port())
    said: SimpleQueue[object] = SimpleQueue()
    BeaconServer(address, SECRET, said.put, silent_s=2.5)
    alive = BeaconClient(address, secret, "worker-2", 5, lambda ended: None, silent_s=2.5)
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
    BeaconServer(address, SECRET, said.put)
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
    frozen = socket.create_server(("127.0.0.1", free_port()))
    address = Address("127.0.0.1", frozen.getsockname()[1])
    heard: SimpleQueue[JobEnded] = SimpleQueue()
    BeaconClient(address, secret, "worker-1", 5, heard.put, lost_after_s=3.0, silent_s=1.5)
    connection = accept(frozen)
    began = time.monotonic()
    frozen.close()
    assert heard.get(timeout=20) == JobEnded(None)
    assert 2.5 < time.monotonic() - began < 8
    connection.close()
