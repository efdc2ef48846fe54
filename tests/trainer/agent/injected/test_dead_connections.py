"""Connections of TensorFlow's port are closed when their peer counts as lost; others are not
changed."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from types import SimpleNamespace

import pytest

from trainer.agent.injected import dead_connections
from trainer.agent.injected.dead_connections import limit, look, port_in


def limit_of(one: socket.socket) -> int:
    """Returns the socket's limit in milliseconds without an answer; 0 if idle connections are not
    probed."""
    asks = one.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    return asks and one.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)


class Over(BaseException):
    """Raised to end a thread that watches forever."""


@pytest.fixture
def watching(monkeypatch):
    """End the thread that watches connections with the test."""
    over, watch = threading.Event(), dead_connections.watch

    def sleep(_seconds):
        if over.wait(0.05):
            raise Over

    def watched(*arguments):
        with contextlib.suppress(Over):
            watch(*arguments)

    monkeypatch.setattr(dead_connections, "time", SimpleNamespace(sleep=sleep))
    monkeypatch.setattr(dead_connections, "watch", watched)
    yield
    over.set()


@pytest.fixture
def pair():
    """Returns a function that connects two sockets: (port, one, other)."""
    made = []

    def connect():
        server = socket.create_server(("127.0.0.1", 0))
        one = socket.create_connection(server.getsockname())
        other, _ = server.accept()
        made.extend((server, one, other))
        return server.getsockname()[1], one, other

    yield connect
    for each in made:
        each.close()


def test_both_ends_are_limited_and_other_connections_are_not(pair):
    port, one, other = pair()
    _, stranger, _ = pair()
    read, write = os.pipe()
    look(port, 4000, set())
    os.close(read), os.close(write)
    assert (limit_of(one), limit_of(other), limit_of(stranger)) == (4000, 4000, 0)


def test_known_connections_are_not_changed_again(pair):
    port, one, _ = pair()
    known = look(port, 4000, set())
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1)
    assert look(port, 4000, known) >= {f"socket:[{os.fstat(one.fileno()).st_ino}]"}
    assert limit_of(one) == 1


@pytest.mark.usefixtures("watching")
def test_later_connections_are_limited_too(pair):
    port, early, _ = pair()
    limit(2.5, json.dumps({"cluster": {"ps": [f"127.0.0.1:{port}"]}}))
    late = socket.create_connection(("127.0.0.1", port))
    until = time.monotonic() + 10
    while not (limit_of(early) == limit_of(late) == 2500):
        assert time.monotonic() < until
        time.sleep(0.05)
    late.close()


@pytest.mark.parametrize(
    ("config", "port"),
    [
        ('{"cluster": {"ps": ["10.0.0.5:2222"], "worker": []}}', 2222),
        ('{"cluster": {"worker": ["[fd00::5]:3333"]}}', 3333),
        ("", 0), ("{}", 0), ("nonsense", 0), ('{"cluster": {"ps": []}}', 0), ("[]", 0),
    ],
)  # fmt: skip
def test_the_port_is_that_of_the_cluster(config, port):
    assert port_in(config) == port


WATCHES = """
import tensorflow, threading
print(any(thread.name == "dead connections" for thread in threading.enumerate()))
"""


@pytest.mark.parametrize(("silent_s", "watched"), [(4, True), (0, False)])
def test_a_program_is_watched_after_its_import_of_tensorflow(
    run_task, toy_tensorflow, tmp_path, silent_s, watched
):
    (tmp_path / "train.py").write_text(WATCHES)
    task = run_task(
        "chief-0", {"chief": ["127.0.0.1:2222"]}, "run", str(tmp_path / "train.py"),
        CLUSTER_KIT_SILENT_S=silent_s,
    )  # fmt: skip
    assert task.wait(60) == 0
    assert f"\n{watched}\n" in task.stdout.read()
