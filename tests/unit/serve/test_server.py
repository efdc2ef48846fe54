"""The server, through a real connection on this machine's loopback."""

from __future__ import annotations

import contextlib
import itertools
import select
import socket
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse, RemoteDisconnected

import pytest

from cluster_kit.errors import EngineError, HostError, UsageError
from cluster_kit.serve.server import (
    LARGEST,
    MOST_STRANGERS,
    Response,
    Route,
    Server,
    as_json,
    bound,
    listening,
    stream,
    url_of,
)


def _raise(error: Exception) -> Response:
    raise error


def _pieces() -> Iterator[bytes]:
    yield b"data: 1\n\n"
    yield b"data: 2\n\n"


ROUTES = (
    Route("GET", "/", lambda request, _: as_json(dict(request.query))),
    Route("GET", "/live", lambda *_: stream(_pieces())),
    Route("GET", "/usage", lambda *_: _raise(UsageError("no such run", "name another"))),
    Route("GET", "/engine", lambda *_: _raise(EngineError("it is gone", "start it"))),
    Route("GET", "/host", lambda *_: _raise(HostError("not now"))),
    Route("GET", "/bug", lambda *_: _raise(ZeroDivisionError())),
    Route("POST", "/do/{what}", lambda _, parts: Response(parts["what"].encode())),
)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    one = bound("127.0.0.1", 0, "secret", ROUTES)
    with listening(one):
        yield one


def ask(
    server: Server, path: str, method: str = "GET", body: bytes = b"", **headers: str
) -> tuple[HTTPResponse, bytes]:
    connection = HTTPConnection("127.0.0.1", server.server_address[1], timeout=20)
    connection.request(method, path, body or None, {"Authorization": "Bearer secret", **headers})
    response = connection.getresponse()
    read = response.read()
    connection.close()
    return response, read


def test_answers_have_headers_that_keep_the_token_private(server: Server) -> None:
    response, body = ask(server, "/?a=1&b=%20x&token=secret")
    assert (response.status, body) == (200, b'{"a": "1", "b": " x", "token": "secret"}')
    told = dict(response.getheaders())
    assert told["Referrer-Policy"] == "no-referrer" and told["Cache-Control"] == "no-store"
    assert told["X-Frame-Options"] == "DENY"


def test_headers_of_a_request_without_a_token_take_little_memory(server: Server) -> None:
    first = b"GET / HTTP/1.1"
    line = b"X: " + b"a" * 1000 + b"\r\n"
    with socket.create_connection(server.server_address[:2], timeout=20) as stranger:
        stranger.sendall(first + b"\r\nHost: localhost\r\n" + line * (LARGEST // len(line) + 1))
        assert b" 431 " in stranger.recv(1000).partition(b"\r\n")[0]


def test_each_request_of_a_connection_may_have_long_headers(server: Server) -> None:
    connection = HTTPConnection("127.0.0.1", server.server_address[1], timeout=20)
    for _ in range(3):
        connection.request("GET", "/", None, {"Authorization": "Bearer secret", "X": "a" * 20000})
        response = connection.getresponse()
        assert (response.status, response.read()) == (200, b"{}")
    connection.close()


def test_a_stream_is_sent_until_it_ends(server: Server) -> None:
    response, body = ask(server, "/live")
    assert response.getheader("Content-Type") == "text/event-stream"
    assert body == b"data: 1\n\ndata: 2\n\n"


def test_one_connection_serves_several_requests(server: Server) -> None:
    connection = HTTPConnection("127.0.0.1", server.server_address[1], timeout=20)
    for _ in range(2):
        connection.request("GET", "/?token=secret")
        assert connection.getresponse().read() == b'{"token": "secret"}'
    connection.close()


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        ("/usage", 404, "404: no such run\nname another\n"),
        ("/engine", 503, "503: it is gone\nstart it\n"),
        ("/host", 409, "409: not now\n"),
        ("/nope", 404, "404: /nope was not found here: the page of all clusters is /\n"),
    ],
)
def test_errors_are_plain_sentences(server: Server, path: str, status: int, says: str) -> None:
    response, body = ask(server, path)
    assert (response.status, body.decode()) == (status, says)
    assert response.getheader("Content-Type") == "text/plain; charset=utf-8"


def test_without_the_token_or_with_another_host_name_the_answer_is_403(server: Server) -> None:
    assert ask(server, "/", Authorization="Bearer wrong")[0].status == 403
    assert ask(server, "/", Host="evil.example")[0].status == 403
    response, body = ask(server, "/nope", Authorization="")
    assert response.status == 403, "what there is, is not told either"
    assert b"open the URL that was printed on the terminal" in body


def test_the_body_of_a_post_is_not_taken_for_the_next_request(server: Server) -> None:
    response, body = ask(server, "/do/it", "POST", b"GET /?token=secret HTTP/1.1\r\n\r\n")
    assert body == b"it" and response.getheader("Connection") == "close"


def raw(server: Server, request: bytes) -> bytes:
    """Returns everything that is answered to these bytes until the server closes the connection."""
    with socket.create_connection(("127.0.0.1", server.server_address[1]), timeout=10) as asking:
        asking.sendall(request)
        return b"".join(iter(lambda: asking.recv(65536), b""))


NEXT = b"GET /?next=1&token=secret HTTP/1.1\r\nHost: localhost\r\n\r\n"


HOSTS = [
    b"Host: localhost\r\nHost: evil.example",
    b"Host: localhost\r\nhost: localhost",
    b"Host: localhost, evil.example",
    b"Host: [::1]evil.example",
    b"Host: [::1",
    b"Host: me@localhost",
    b"Host: localhost:80:90",
    b"Host: localhost/x",
    b"Host: localhost:",
    b"Host: local host",
    b"Host: localhost\r\n evil.example",
    b"Host: localhost\r\nX-Other : a",
]


def test_a_malformed_or_second_host_is_refused(server: Server, subtests: pytest.Subtests) -> None:
    for method, host in itertools.product((b"GET", b"POST"), HOSTS):
        with subtests.test(method=method, host=host):
            request = b"%s /do/it?token=secret HTTP/1.1\r\n%s\r\n" % (method, host)
            answered = raw(server, request + b"Authorization: Bearer secret\r\n\r\n")
            assert answered.startswith(b"HTTP/1.1 400 ") and b"X-Frame-Options" in answered
    for host in (b"localhost", b" 127.0.0.1:%d " % server.server_address[1], b"[::1]:80"):
        request = b"GET /?token=secret HTTP/1.1\r\nHost:%s\r\nConnection: close\r\n\r\n" % host
        assert raw(server, request).startswith(b"HTTP/1.1 200 "), host


METHODS = (b"GET", b"HEAD", b"PATCH", b"OPTIONS", b"TRACE", b"FOO")
LENGTHS = [
    b"Content-Length: %d" % len(NEXT),
    b"content-length : %d" % len(NEXT),
    b"Content-Length: %d\r\nContent-Length: 0" % len(NEXT),
    b"Content-Length: 0\r\nContent-Length: %d" % len(NEXT),
    b"Content-Length: +%d" % len(NEXT),
    b"Transfer-Encoding: chunked",
    b"Transfer-Encoding: identity",
]


def test_a_body_is_never_read_as_the_next_request(
    server: Server, subtests: pytest.Subtests
) -> None:
    for method, length in itertools.product(METHODS, LENGTHS):
        with subtests.test(method=method, length=length):
            head = b"%s /?token=secret HTTP/1.1\r\nHost: localhost\r\n%s\r\n\r\n" % (method, length)
            answered = raw(server, head + NEXT)
            assert answered.count(b"HTTP/1.1 ") == 1 and b'"next"' not in answered
            assert b"X-Frame-Options: DENY" in answered and b"Connection: close" in answered


@pytest.mark.parametrize(
    ("method", "status"), [("PATCH", 405), ("OPTIONS", 405), ("PUT", 405), ("TRACE", 501)]
)
def test_other_methods_are_refused_with_the_same_headers(
    server: Server, method: str, status: int
) -> None:
    response, _ = ask(server, "/", method)
    assert response.status == status
    assert response.getheader("X-Content-Type-Options") == "nosniff"
    assert response.getheader("Referrer-Policy") == "no-referrer"


def test_requests_that_are_not_http_are_refused_with_the_same_headers(server: Server) -> None:
    for odd in (
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / nonsense\r\n\r\n",
        b"GET /%s HTTP/1.1\r\n\r\n" % (b"a" * 70_000),
    ):
        assert b"X-Frame-Options: DENY" in raw(server, odd)


def open_connections(server: Server) -> int:
    return len(server._connections)


def test_a_connection_without_a_token_is_soon_closed_however_it_sends(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cluster_kit.serve.server.STRANGER_S", 0.3)
    address = "127.0.0.1", server.server_address[1]
    with (
        socket.create_connection(address, 5) as silent,
        socket.create_connection(address, 5) as slow,
    ):
        until = time.monotonic() + 5
        with contextlib.suppress(ConnectionError):
            while time.monotonic() < until and not select.select([slow], [], [], 0.05)[0]:
                slow.sendall(b"G")
        assert time.monotonic() < until and slow.recv(1) == b""
        assert silent.recv(1) == b""


def test_many_connections_without_a_token_keep_no_other_out(server: Server) -> None:
    address = "127.0.0.1", server.server_address[1]
    with contextlib.ExitStack() as opened:
        for _ in range(4 * MOST_STRANGERS):
            opened.enter_context(socket.create_connection(address, 5))
        assert ask(server, "/")[0].status == 200
        assert open_connections(server) <= MOST_STRANGERS
        assert threading.active_count() < 2 * MOST_STRANGERS
    until = time.monotonic() + 5
    while open_connections(server) and time.monotonic() < until:
        time.sleep(0.02)
    assert not open_connections(server)


def test_connections_with_the_token_are_bounded_too(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cluster_kit.serve.server.MOST_GUESTS", 2)
    with contextlib.ExitStack() as opened:
        for _ in range(2):
            one = HTTPConnection("127.0.0.1", server.server_address[1], timeout=20)
            opened.callback(one.close)
            one.request("GET", "/?token=secret")
            assert one.getresponse().read()
        with pytest.raises((ConnectionError, RemoteDisconnected)):
            ask(server, "/")


def test_a_bug_closes_the_connection_and_is_printed_in_the_terminal(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(Exception, match="closed connection"):
        ask(server, "/bug")
    assert ask(server, "/")[0].status == 200
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_a_port_in_use_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(HostError, match=rf"port {port} of 127\.0\.0\.1 is taken") as error:
            bound("127.0.0.1", port, "", ())
    assert "--port" in error.value.hint


def test_an_address_of_another_machine_is_reported() -> None:
    for address in ("192.0.2.1", "192.168..1", "a" * 70):
        with pytest.raises(HostError, match=f"^{address} is not an address of this machine: "):
            bound(address, 0, "", ())


def test_the_url_of_a_server_for_other_machines_is_accepted() -> None:
    one = bound("0.0.0.0", 0, "secret", ROUTES)
    with listening(one) as url:
        name = url.removeprefix("http://")
        assert name.partition(":")[0] == socket.gethostname()
        assert ask(one, "/", Host=name)[0].status == 200
        assert ask(one, "/", Host="evil.example")[0].status == 403


def test_the_url_has_brackets_if_the_address_needs_them() -> None:
    try:
        one = bound("::1", 0, "", ())
    except HostError:
        pytest.skip("this machine has no IPv6")
    assert url_of(one).startswith("http://[::1]:")
    one.server_close()


@pytest.mark.parametrize("path", ["http://[", "http://[::bad/", "x://[a]b]/"])
def test_an_invalid_url_is_refused_without_a_traceback(
    server: Server, path: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.create_connection(("127.0.0.1", server.server_address[1]), 5) as asking:
        asking.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        assert asking.recv(100).startswith(b"HTTP/1.1 400 ")
    assert capfd.readouterr().err == ""
