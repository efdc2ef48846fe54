"""Services that programs wait for before they start."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from queue import SimpleQueue
from types import SimpleNamespace

import pytest

from trainer.agent import outcome, services
from trainer.agent.errors import ContractError
from trainer.agent.services import Service


class Page(BaseHTTPRequestHandler):
    """Is not ready at the first request."""

    asked = 0

    def do_GET(self) -> None:
        type(self).asked += 1
        self.send_response(200 if self.asked > 1 and self.path == "/health" else 503)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def page() -> Iterator[int]:
    Page.asked = 0
    with HTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def wait(*needed: Service, seconds: float = 60.0, events: SimpleQueue | None = None):
    task = SimpleNamespace(start_deadline_s=seconds)
    return services.wait(task, list(needed), events or SimpleQueue())


def test_a_port_and_a_page_that_finally_answer_are_ready() -> None:
    with page() as port, socket.create_server(("127.0.0.1", 0)) as other:
        answers = other.getsockname()[1]
        assert wait(Service("cache", "127.0.0.1", answers, "")) is None
        assert wait(Service("web", "127.0.0.1", port, "/health")) is None
        assert Page.asked == 2
        late = wait(Service("web", "127.0.0.1", port, "/other"), seconds=0.0)
        assert (late.exit_code, late.reason, late.tasks) == (6, "start-deadline", ("web",))
        assert "the sidecar web is not ready after 0 s" in late.message
        assert "/other answers with status 503" in late.message


def test_a_service_that_does_not_start_is_named_at_the_start_deadline() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        service = Service("cache", "127.0.0.1", held.getsockname()[1], "")
        late = wait(service, seconds=0.5)
        assert late.reason == "start-deadline"
        assert "the sidecar cache is not ready after 0.5 s" in late.message
        events: SimpleQueue = SimpleQueue()
        events.put(outcome.stopped())
        assert wait(service, events=events).reason == "stopped"


def slowly(connection: socket.socket, closed: threading.Event) -> None:
    for byte in b"HTTP/1.1 200 OK":
        connection.sendall(bytes([byte]))
        closed.wait(0.1)


def goes_on(connection: socket.socket, _: threading.Event) -> None:
    while True:
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")


def no_page(connection: socket.socket, _: threading.Event) -> None:
    connection.sendall(b"\x1b]0;title\x07" * 10_000 + b"\n")


@pytest.mark.parametrize(
    ("answer", "why"),
    [(slowly, "timed out"), (goes_on, "status 100"), (no_page, "does not answer with HTTP")],
)
def test_no_answer_of_a_service_exceeds_the_start_deadline(
    monkeypatch: pytest.MonkeyPatch,
    answer: Callable[[socket.socket, threading.Event], None],
    why: str,
) -> None:
    monkeypatch.setattr(services, "ANSWER_S", 0.3)
    closed = threading.Event()

    def serve(server: socket.socket) -> None:
        while not closed.is_set():
            try:
                connection, _ = server.accept()
                with connection:
                    answer(connection, closed)
            except OSError:
                continue

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, args=(server,))
        thread.start()
        began = time.monotonic()
        try:
            late = wait(Service("web", "127.0.0.1", server.getsockname()[1], "/"), seconds=0.0)
        finally:
            closed.set()
            server.shutdown(socket.SHUT_RDWR)
            thread.join()
    assert late.reason == "start-deadline" and why in late.message
    assert len(late.message) < 200 and time.monotonic() - began < 10


def test_the_variable_is_parsed_or_refused() -> None:
    one = {"name": "cache", "host": "10.0.0.5", "port": 6379, "path": ""}
    assert services.parse(json.dumps([one])) == [Service("cache", "10.0.0.5", 6379, "")]
    assert services.parse("") == []
    for text in ("[", "[1]", '[{"name": "x"}]'):
        with pytest.raises(ContractError, match="CLUSTER_KIT_WAITS_FOR"):
            services.parse(text)
