"""Containers are listed by the engine's socket without the SDK, or not at all."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster_kit.platforms.docker import docker_socket

LISTED = {
    "Id": "1",
    "Labels": {
        "cluster-kit.cluster": "demo",
        "cluster-kit.role": "ps",
        "cluster-kit.index": "0",
    },
    "State": "running",
    "Mounts": [{"Source": "/runs/demo/1/output", "Destination": "/output"}],
}


class Engine:
    """Answers one request on a socket."""

    def __init__(self, path: Path) -> None:
        self.answer = b""
        self.request = b""
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(path))
        self._server.listen()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        connection, _ = self._server.accept()
        with connection:
            self.request = connection.recv(1 << 16)
            connection.sendall(self.answer)

    def close(self) -> None:
        if not self.request:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(self._server.getsockname())
        self._thread.join()
        self._server.close()


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    path = tmp_path / "docker.sock"
    monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
    made = Engine(path)
    yield made
    made.close()


def test_the_containers_of_the_kit(engine: Engine) -> None:
    engine.answer = b"HTTP/1.0 200 OK\r\nApi-Version: 1.47\r\n\r\n" + json.dumps([LISTED]).encode()
    (container,) = docker_socket.glance() or ()
    assert (container.cluster, container.name, container.role) == ("demo", "ps-0", "ps")
    assert (container.state, container.output) == ("running", "/runs/demo/1/output")
    path = engine.request.split()[1].decode()
    assert path.startswith("/containers/json?all=1&filters=") and "cluster-kit.cluster" in path


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.0 500 Oh\r\n\r\n[]", b"HTTP/1.0 200 OK\r\n\r\n["])
def test_none_if_the_answer_is_none(engine: Engine, answer: bytes) -> None:
    engine.answer = answer
    assert docker_socket.glance() is None


def test_none_if_another_engine_may_be_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines = []
    monkeypatch.setattr(docker_socket, "_SOCKET", "/the/default")
    for name in ("DOCKER_HOST", "DOCKER_CONTEXT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    settings = tmp_path / "config.json"
    for text in ("", "{}", '{"currentContext": "default"}', '{"currentContext": "far"}', "["):
        if text:
            settings.write_text(text)
        engines.append(docker_socket._socket_path())
    assert engines == ["/the/default", "/the/default", "/the/default", None, None]
    settings.unlink()
    monkeypatch.setenv("DOCKER_CONTEXT", "far")
    assert docker_socket._socket_path() is None
    for host in ("tcp://1.2.3.4:2375", "ssh://far", "unix://relative"):
        monkeypatch.setenv("DOCKER_HOST", host)
        assert docker_socket.glance() is None
