"""Clients without the run's secret: nothing that they send, or do not send, has an effect."""

from __future__ import annotations

import os
import random
import socket
import struct
import time
from pathlib import Path
from queue import Empty, SimpleQueue

import pytest
from ended import beacons_end, leaders
from followers import SECRET, Mute, accept, end, joined, secret
from hypothesis import given
from hypothesis import strategies as st
from waiting import wait_for

from trainer.agent.beacon import handshake, server
from trainer.agent.beacon.client import BeaconClient, JobEnded
from trainer.agent.beacon.messages import (
    LONGEST_LINE,
    Beat,
    End,
    Joined,
    Left,
    NoAnswer,
    decode,
    encode,
)
from trainer.agent.beacon.server import BeaconServer
from trainer.agent.task import Address, read_task

__all__ = ["beacons_end", "leaders"]
pytestmark = pytest.mark.first

NONE = "- - -"
KILLING = [
    f"beat 0 nan 0 0 0 {NONE}".encode(),
    f"beat 0 inf 0 0 0 {NONE}".encode(),
    f"beat 0 0 1e999 0 0 {NONE}".encode(),
    f"beat 0 0 0 0 -inf {NONE}".encode(),
    b"beat 0 0 0 0 0 - - nan",
    b"end " + b"9" * 5000,
    b"report failed worker-1 ended by a stranger",
    b"hello worker-9 7f",
]
"""Lines each of which ended the leader's thread or the job when all clients were trusted."""
PIECES = [b"nan", b"-inf", b"1e999", b"9" * 5000, b"\0", b"\n", b"\r", b" ", b"\xff", b"-", b".",
          b"hello", b"beat", b"end", b"report", b"answer", b"unanswered", b"x" * 300,
          "\u0661".encode(), b"worker-1", b"\x1e"]  # fmt: skip
LINES = [*KILLING, b"answer " + b"0" * 97, b"hello worker-1 7f", b"done worker-1", b"stopping",
         b"unanswered ps-0 3.5", b"failed worker-1 no", b"beat 1 2 3 4 5 6 7 8",
         b"stacks", b"end 0"]  # fmt: skip
ROUND = 100


def mutated(chance: random.Random) -> bytes:
    """Returns a line of the beacon with some bytes overwritten, or random bytes."""
    if chance.random() < 0.2:
        return chance.randbytes(chance.randrange(400))
    line = chance.choice(LINES)
    for _ in range(chance.randrange(4)):
        at, length = chance.randrange(len(line) + 1), chance.randrange(12)
        line = line[:at] + chance.choice(PIECES) + line[at + length :]
    return line


@pytest.fixture
def address(free_port) -> Address:
    return Address("127.0.0.1", free_port())


def connect(address: Address) -> socket.socket:
    return socket.create_connection((address.host, address.port), timeout=20)


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def closed(connection: socket.socket) -> bool:
    """Returns whether the other side closes the connection; it may send its challenge first."""
    connection.settimeout(20)
    try:
        while connection.recv(LONGEST_LINE):
            pass
    except ConnectionError:
        pass
    return True


def is_alive(address: Address, output: SimpleQueue[object], task: str = "worker-7") -> None:
    """Assert that the leader answers a follower that knows the secret, and accepted no message
    before."""
    follower = Mute(address, task, "7f")
    assert output.get(timeout=20) == Joined(task)
    follower.socket.close()
    assert output.get(timeout=20) == Left(task, "lost")


@pytest.mark.parametrize("line", KILLING)
def test_a_client_without_the_secret_is_ignored_and_disconnected(address, line):
    output: SimpleQueue[object] = SimpleQueue()
    BeaconServer(address, SECRET, output.put)
    with connect(address) as stranger:
        stranger.sendall(line[:200] + b"\n")
        assert closed(stranger)
    is_alive(address, output)


@pytest.mark.parametrize("line", KILLING[:6])
def test_a_follower_cannot_end_the_leaders_thread(address, line):
    output: SimpleQueue[object] = SimpleQueue()
    leader = BeaconServer(address, SECRET, output.put)
    follower = Mute(address, "worker-1", "7f")
    assert output.get(timeout=20) == Joined("worker-1")
    follower.socket.sendall(line + b"\n")
    follower.say("done worker-1")
    assert output.get(timeout=20) == Left("worker-1", "done")
    assert leader.used() == {}
    is_alive(address, output)


def test_an_unexpected_error_ends_only_one_connection(address, capsys):
    output: SimpleQueue[object] = SimpleQueue()

    def heard(event: object) -> None:
        output.put(event)
        if event == Joined("worker-1"):
            raise RuntimeError("a mistake of the kit")

    BeaconServer(address, SECRET, heard)
    follower = Mute(address, "worker-1", "7f")
    assert [output.get(timeout=20) for _ in range(2)] == [
        Joined("worker-1"),
        Left("worker-1", "lost"),
    ]
    assert closed(follower.socket)
    is_alive(address, output)
    assert "a mistake of the kit" in capsys.readouterr().err


def test_a_reset_after_the_leaders_message_is_survived(address):
    output: SimpleQueue[object] = SimpleQueue()
    leader = BeaconServer(address, SECRET, output.put)
    leader.stopping()
    for make in (connect, joined):
        for _ in range(20):
            connection = make(address)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
    is_alive(address, output)


def test_closed_connections_leave_no_file_descriptor(address):
    output: SimpleQueue[object] = SimpleQueue()
    BeaconServer(address, SECRET, output.put)
    is_alive(address, output)
    before = open_files()
    for round_ in range(100):
        with connect(address) as stranger:
            stranger.sendall(b"x\n" if round_ % 2 else b"")
        joined(address).close()
    is_alive(address, output)
    wait_for(lambda: open_files() <= before, 20)


def test_a_client_that_sends_nothing_or_no_line_end_is_disconnected(address, monkeypatch):
    monkeypatch.setattr(handshake, "ANSWER_S", 0.1)
    output: SimpleQueue[object] = SimpleQueue()
    BeaconServer(address, SECRET, output.put)
    mute, endless = connect(address), connect(address)
    endless.sendall(b"x" * 2 * handshake.LONGEST)
    assert closed(mute) and closed(endless)
    follower = Mute(address, "worker-1", "7f")
    assert output.get(timeout=20) == Joined("worker-1")
    follower.socket.sendall(b"x" * 2 * LONGEST_LINE)
    assert closed(follower.socket)
    assert output.get(timeout=20) == Left("worker-1", "lost")


def test_a_follower_that_floods_is_disconnected(address, monkeypatch):
    monkeypatch.setattr(server, "MOST_LINES", 50)
    output: SimpleQueue[object] = SimpleQueue()
    BeaconServer(address, SECRET, output.put)
    follower = Mute(address, "worker-1", "7f")
    follower.socket.sendall(b"stacks\n" * 500)
    assert closed(follower.socket)
    assert [output.get(timeout=20) for _ in range(2)] == [
        Joined("worker-1"),
        Left("worker-1", "lost"),
    ]


def test_too_many_strangers_keep_no_follower_out(address, monkeypatch):
    monkeypatch.setattr(server, "MOST_STRANGERS", 8)
    output: SimpleQueue[object] = SimpleQueue()
    BeaconServer(address, SECRET, output.put)
    strangers = [connect(address) for _ in range(40)]
    is_alive(address, output)
    assert all(map(closed, strangers[:32]))
    for stranger in strangers:
        stranger.close()


def test_without_a_free_descriptor_strangers_are_disconnected_and_the_thread_continues(
    address, monkeypatch
):
    monkeypatch.setattr(server, "REST_S", 0.0)
    output: SimpleQueue[object] = SimpleQueue()
    leader = BeaconServer(address, SECRET, output.put)
    waiting = connect(address)
    assert waiting.recv(9) == b"challenge"
    real = leader._socket

    class Full:
        """A socket whose `accept` fails twice, as at the limit of open files."""

        times = 2

        def accept(self) -> tuple[socket.socket, object]:
            if self.times:
                self.times -= 1
                raise OSError(24, "Too many open files")
            return real.accept()

        def shutdown(self, how: int) -> None:
            real.shutdown(how)

    leader._socket = Full()
    is_alive(address, output)
    assert closed(waiting)


def test_names_are_bounded(address, monkeypatch):
    monkeypatch.setattr(server, "MOST_TASKS", 2)
    output: SimpleQueue[object] = SimpleQueue()
    BeaconServer(address, SECRET, output.put)
    followers = [Mute(address, f"worker-{index}", "7f") for index in range(3)]
    assert {output.get(timeout=20) for _ in range(2)} == {Joined("worker-0"), Joined("worker-1")}
    followers[2].socket.close()
    with pytest.raises(Empty):
        output.get(timeout=0.2)


def test_a_follower_with_another_secret_receives_nothing(address):
    output: SimpleQueue[object] = SimpleQueue()
    heard: SimpleQueue[JobEnded] = SimpleQueue()
    BeaconServer(address, SECRET, output.put).announce(0)
    BeaconClient(address, lambda: b"another", "worker-1", 0.5, heard.put)
    assert heard.get(timeout=20) == JobEnded(None, seen=False)
    assert output.empty()


@pytest.mark.parametrize(
    "words",
    [b"end 0\n", b"challenge 00\nanswer 00\nend 0\n", b"challenge " + b"0" * 9999, b"\xff" * 99999],
)
def test_a_leader_without_the_secret_is_ignored(address, words):
    impostor = socket.create_server((address.host, address.port))
    heard: SimpleQueue[object] = SimpleQueue()
    BeaconClient(address, secret, "worker-1", 0.5, heard.put)
    follower, _ = impostor.accept()
    follower.sendall(words)
    assert heard.get(timeout=20) == JobEnded(None, seen=False)
    follower.close()
    impostor.close()


def test_a_follower_survives_any_message_of_a_leader(address):
    hostile = socket.create_server((address.host, address.port))
    heard: SimpleQueue[object] = SimpleQueue()
    BeaconClient(address, secret, "worker-1", 20, heard.put)
    chance = random.Random(1)
    follower = accept(hostile)
    lines = [line for line in (mutated(chance) for _ in range(200))
             if not isinstance(decode(line), End) and b"\n" not in line]  # fmt: skip
    follower.sendall(b"\n".join(lines) + b"\nend " + b"9" * 5000 + b"\nend 3\n")
    while not isinstance(ended := heard.get(timeout=20), JobEnded):
        pass
    assert ended == JobEnded(3)
    follower.close()
    hostile.close()


def test_without_a_secret_from_the_host_the_leader_makes_one_that_only_its_user_can_read(tmp_path):
    task = read_task({"CLUSTER_KIT_OUTPUT": str(tmp_path)})
    file = tmp_path / "progress" / handshake.FILE
    file.parent.mkdir()
    with pytest.raises(OSError, match="No such file"):
        handshake.read_secret(task, {})
    made = [handshake.make_secret(task, {}) for _ in range(2)]
    assert made[0] != made[1] == handshake.read_secret(task, {})
    assert len(made[0]) == 32 and file.stat().st_mode & 0o777 == 0o600
    assert list(file.parent.iterdir()) == [file]
    handshake.forget_secret(task)
    handshake.forget_secret(task)
    assert not file.exists()
    given_ = {handshake.VARIABLE: "of the host"}
    assert handshake.make_secret(task, given_) == handshake.read_secret(task, given_)
    assert not file.exists()


@pytest.mark.parametrize("kind", ["fifo", "link"])
def test_a_secret_file_that_is_not_a_regular_file_is_ignored(tmp_path: Path, kind):
    task = read_task({"CLUSTER_KIT_OUTPUT": str(tmp_path)})
    file = tmp_path / "progress" / handshake.FILE
    file.parent.mkdir()
    os.mkfifo(file) if kind == "fifo" else file.symlink_to("/etc/passwd")
    with pytest.raises(OSError):
        handshake.read_secret(task, {})
    made = handshake.make_secret(task, {})
    assert handshake.read_secret(task, {}) == made
    assert not file.is_symlink()


@given(st.integers(0, 2**32))
def test_any_line_is_a_message_or_ignored(seed):
    chance = random.Random(seed)
    for _ in range(ROUND):
        message = decode(mutated(chance))
        if message is not None:
            assert decode(encode(message)) is not None
        if isinstance(message, NoAnswer):
            assert 0 <= message.seconds < 1e9
        if isinstance(message, Beat) and message.used:
            assert message.used.bytes >= 0


@pytest.fixture(scope="module")
def attacked(free_port):
    """Yields (address, received messages) of a leader that survives all examples."""
    address = Address("127.0.0.1", free_port())
    output: SimpleQueue[object] = SimpleQueue()
    server = BeaconServer(address, SECRET, output.put)
    yield address, output
    end(server)


@given(st.integers(0, 2**32))
def test_the_leader_survives_any_bytes_of_strangers_and_followers(attacked, seed):
    address, output = attacked
    chance = random.Random(seed)
    for make in (connect, joined):
        connection = make(address)
        try:
            connection.sendall(b"\n".join(mutated(chance) for _ in range(ROUND)) + b"\n")
            if chance.random() < 0.3:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        except OSError:
            assert make is connect, "it was cut off in the middle"
        connection.close()
    last = Mute(address, "ps-999999", "7f")
    until = time.monotonic() + 20
    while output.get(timeout=20) != Joined("ps-999999"):
        assert time.monotonic() < until
    last.socket.close()


@given(st.integers(0, 2**32))
def test_a_follower_survives_any_bytes_of_a_server(seed):
    chance = random.Random(seed)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"\n".join(mutated(chance) for _ in range(3))[:4000])
        theirs.shutdown(socket.SHUT_WR)
        with pytest.raises(OSError):
            handshake.join(ours, SECRET, 5.0)
