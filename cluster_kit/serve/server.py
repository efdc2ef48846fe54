"""The HTTP server: Python's own, in threads.

A dozen routes for one person need no server that must be installed and updated on every machine.
The engine's SDK blocks, which these threads may do.
"""

from __future__ import annotations

import contextlib
import errno
import http.client
import io
import ipaddress
import json
import re
import secrets
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from cluster_kit.errors import EngineError, HostError, KitError, UsageError

HTML, TEXT = "text/html; charset=utf-8", "text/plain; charset=utf-8"
JSON, EVENTS = "application/json", "text/event-stream"


@dataclass(frozen=True)
class Request:
    """A browser's request; `headers` have lower-case names, `query` the last value of each name."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Response:
    """The server's answer; a `body` that is an iterator is sent piece by piece until it ends."""

    body: bytes | Iterator[bytes]
    type: str = HTML
    status: int = 200


class Refused(Exception):
    """A refused request: an HTTP status, and a sentence with the reason."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence


Answer = Callable[[Request, Mapping[str, str]], Response]
"""Answers a request; the second argument has the named parts of its path."""


@dataclass(frozen=True)
class Route:
    """The requests that an answer serves: `Route("GET", "/cluster/{name}", …)`."""

    method: str
    path: str
    answer: Answer

    def parts(self, path: str) -> Mapping[str, str] | None:
        """The named parts of a path; None if the path does not match this route."""
        pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(self.path))
        match = re.fullmatch(pattern, path)
        return match.groupdict() if match else None


def answer(routes: Sequence[Route], request: Request) -> Response:
    """The response of the first matching route.

    Raises:
        Refused: no route matches (404), or none for this method (405).
    """
    method = "GET" if request.method == "HEAD" else request.method
    others = False
    for route in routes:
        parts = route.parts(request.path)
        if parts is None:
            continue
        if route.method == method:
            return route.answer(request, parts)
        others = True
    if others:
        raise Refused(405, f"{request.path} does not take {request.method}")
    raise Refused(404, f"{request.path} was not found here: the page of all clusters is /")


def as_json(value: Any) -> Response:
    """A response with this value."""
    return Response(json.dumps(value).encode(), JSON)


LOOPBACK_NAMES = ("localhost",)
_HOST = re.compile(r"\s*(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+|[0-9a-fA-F:]+)(:[0-9]{1,5})?\s*|\s*")
"""A valid Host header. The kit and a proxy could read any other form as different servers."""


def refuse(request: Request, token: str, address: str, machine: str = "") -> None:
    """Raise Refused (403) for a request that is not allowed.

    The token is in the URL (`?token=…`) or in the header `Authorization: Bearer …`. Requests that
    change something need it in the header, which no other site can make a browser send.

    Args:
        address: the address that the server listens on, as the user wrote it.
        machine: the name of this machine, which other machines may use if `address` is reachable.
    """
    host = request.headers.get("host", "")
    if not _is_own(host, address, machine):
        raise Refused(
            403,
            f"`Host: {host}` is not an address of this server, as if another site had sent you "
            "here: open the URL that was printed on the terminal",
        )
    scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
    bearer = credentials.strip() if scheme.lower() == "bearer" else ""
    if request.method not in ("GET", "HEAD"):
        if not _same(bearer, token):
            raise Refused(403, f"{request.method} takes the token: `Authorization: Bearer TOKEN`")
    elif not _same(bearer or request.query.get("token", ""), token):
        raise Refused(
            403,
            "this page takes a token, and that in the URL is "
            f"{'another one' if request.query.get('token') else 'missing'}: "
            "open the URL that was printed on the terminal",
        )


def _same(given: str, token: str) -> bool:
    return secrets.compare_digest(given.encode(), token.encode())


def _is_own(host: str, address: str, machine: str) -> bool:
    """Whether a Host header names this server by an IP address, as localhost, or by its own name.

    If a site's own name points at this machine (DNS rebinding), the header has that name.
    """
    name, only_here = _without_port(host).lower(), is_loopback(address)
    if name in (*LOOPBACK_NAMES, address.lower(), *([] if only_here else [machine.lower()])):
        return bool(name)
    try:
        ip_address = ipaddress.ip_address(name)
    except ValueError:
        return False
    return ip_address.is_loopback or not only_here


def _without_port(host: str) -> str:
    if host.startswith("["):
        name, _, rest = host[1:].partition("]")
        return name if re.fullmatch(r"(:\d+)?", rest) else host
    return host.rpartition(":")[0] if host.count(":") == 1 else host


def is_loopback(address: str) -> bool:
    """Whether only this machine reaches a server that listens on an address."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address.lower() in LOOPBACK_NAMES


IDLE_S = 60
"""Seconds after which a connection that sends no request, or reads no answer, is closed."""
STRANGER_S = 5.0
"""Seconds for a new connection to send a complete request with the token."""
MOST_STRANGERS, MOST_GUESTS = 64, 256
"""Maximum number of connections that have not sent the token yet, and of those that have."""
LARGEST = 32 * 1024
"""Maximum bytes of a request's first line and headers together."""
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass
class _Connection:
    """`until`: when it is closed if its request is not complete; infinite during an answer."""

    socket: socket.socket
    until: float
    has_token: bool = False

    def end(self) -> None:
        """Wake the connection's thread, which then closes it."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)


class Server(ThreadingHTTPServer):
    """Answers requests that have the token, by `routes`; see `listening`.

    Connections are limited in number and time, since each has a thread and a descriptor: otherwise
    anybody who reaches the port could use them up.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, address: str, port: int, token: str, routes: Sequence[Route]) -> None:
        address_info = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
        self.address_family = address_info[0]
        self.address, self.token, self.routes = address, token, routes
        self._connections: dict[socket.socket, _Connection] = {}
        self._lock = threading.Lock()
        super().__init__(address_info[4][:2], _Handler)  # type: ignore[arg-type]

    def server_bind(self) -> None:
        # HTTPServer's method asks DNS for this machine's name, which can take seconds.
        socketserver.TCPServer.server_bind(self)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for a connection; if there are too many, the oldest one without a token is
        closed."""
        with self._lock:
            strangers = [one for one in self._connections.values() if not one.has_token]
            full = len(self._connections) - len(strangers) >= MOST_GUESTS
            for one in strangers[: max(0, len(strangers) - MOST_STRANGERS + 1)]:
                del self._connections[one.socket]
                one.end()
            if not full:
                until = time.monotonic() + STRANGER_S
                self._connections[request] = _Connection(request, until)
        if full:
            self.shutdown_request(request)
        else:
            super().process_request(request, client_address)

    def service_actions(self) -> None:
        """End connections whose time is over, even if they still send; called every 0.1 s."""
        with self._lock:
            now = time.monotonic()
            for one in [one for one in self._connections.values() if one.until < now]:
                del self._connections[one.socket]
                one.end()

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._connections.pop(request, None)
        super().shutdown_request(request)

    def answers(self, request: Any) -> None:
        """Note that a request with the token is complete; its answer has no time limit."""
        with self._lock:
            if connection := self._connections.get(request):
                connection.has_token, connection.until = True, float("inf")

    def has_answered(self, request: Any) -> None:
        """Note that the answer was sent; the connection may send its next request."""
        with self._lock:
            if connection := self._connections.get(request):
                connection.until = time.monotonic() + IDLE_S

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print the traceback of a bug; a page that was closed meanwhile is not a bug."""
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Head:
    """Reads the lines of a connection, at most LARGEST bytes per request."""

    def __init__(self, stream: io.BufferedIOBase) -> None:
        self._stream = stream
        self.close = stream.close
        self.left = LARGEST

    def readline(self, most: int = LARGEST) -> bytes:
        """A line, or the part of it that is within the limit.

        Raises:
            http.client.HTTPException: the previous lines exceed the limit.
        """
        if self.left < 0:
            raise http.client.HTTPException("too many headers")
        line = self._stream.readline(min(most, self.left + 1))
        self.left -= len(line)
        return line


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = IDLE_S
    server: Server

    def setup(self) -> None:
        super().setup()
        self._head = _Head(self.rfile)
        self.rfile = self._head  # type: ignore[assignment]

    def handle_one_request(self) -> None:
        self._head.left = LARGEST
        super().handle_one_request()

    def do_GET(self) -> None:
        try:
            split = urlsplit(self.path)
        except ValueError:  # `http://[`
            self.send_error(400, "invalid URL")
            return
        request = Request(
            self.command,
            unquote(split.path),
            dict(parse_qsl(split.query)),
            {name.lower(): value for name, value in self.headers.items()},
        )
        with contextlib.suppress(ConnectionError, TimeoutError):
            self._send(self._answer(request))
            self.server.has_answered(self.connection)

    do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_GET

    def _answer(self, request: Request) -> Response:
        """The answer; a connection whose request has no token, or has a body, is closed
        afterwards."""
        keeps = self.command in ("GET", "HEAD")
        self.close_connection = self.close_connection or not keeps
        try:
            hosts = self.headers.get_all("host", [])
            if self.headers.defects or len(hosts) > 1 or not all(map(_HOST.fullmatch, hosts)):
                raise Refused(400, "the headers are malformed, or there is more than one Host")
            refuse(request, self.server.token, self.server.address, socket.gethostname())
            # Bodies are never read: they would be parsed as the next request.
            if keeps and self._has_body():
                raise Refused(400, f"{self.command} takes no body")
        except Refused as error:
            self.close_connection = True
            return _told(error.status, error.sentence)
        self.server.answers(self.connection)
        return _answered(self.server, request)

    def _has_body(self) -> bool:
        """Whether the request may have a body."""
        lengths = self.headers.get_all("content-length", [])
        return "transfer-encoding" in self.headers or any(
            length.strip() != "0" for length in lengths
        )

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer invalid HTTP and unknown methods in the same form as other requests."""
        self.close_connection = True
        self.request_version = self.protocol_version  # HTTP/0.9 has no headers
        sentence = message or HTTPStatus(code).phrase
        with contextlib.suppress(ConnectionError, TimeoutError):
            self._send(_told(int(code), sentence))

    def _send(self, response: Response) -> None:
        self.close_connection = self.close_connection or not isinstance(response.body, bytes)
        self.send_response(response.status)
        self.send_header("Content-Type", response.type)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        if isinstance(response.body, bytes):
            self.send_header("Content-Length", str(len(response.body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command == "HEAD":
            return
        if isinstance(response.body, bytes):
            self.wfile.write(response.body)
            return
        with contextlib.closing(response.body) as pieces:  # type: ignore[type-var]
            for piece in pieces:
                self.wfile.write(piece)

    def version_string(self) -> str:
        return "cluster-kit"

    def log_message(self, *_words: object) -> None:
        """Print nothing: the terminal shows the live table."""


def _answered(server: Server, request: Request) -> Response:
    try:
        return answer(server.routes, request)
    except Refused as error:
        return _told(error.status, error.sentence)
    except KitError as error:
        status = 404 if isinstance(error, UsageError) else 409
        status = 503 if isinstance(error, EngineError) else status
        return _told(status, f"{error.message}\n{error.hint}".strip())


def _told(status: int, sentence: str) -> Response:
    return Response(f"{status}: {sentence}\n".encode(), TEXT, status)


@contextlib.contextmanager
def listening(server: Server) -> Iterator[str]:
    """Run the server during the `with` block, whose value is the URL without the token."""
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True)
    thread.start()
    try:
        yield url_of(server)
    finally:
        server.shutdown()
        server.server_close()


def url_of(server: Server) -> str:
    """The URL, such as `http://127.0.0.1:8000`; with this machine's name if it listens on all
    addresses."""
    host, port = server.server_address[:2]
    name = str(host) if str(host) not in ("0.0.0.0", "::") else socket.gethostname()
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def bound(address: str, port: int, token: str, routes: Sequence[Route]) -> Server:
    """A server that is bound to its port.

    Raises:
        HostError: the port is taken, or this machine does not have that address.
    """
    try:
        return Server(address, port, token, routes)
    except UnicodeError:  # such as `a..b`
        raise _not_here(address, "not a valid name") from None
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise HostError(
                f"port {port} of {address} is taken", "name another, or none: --port N"
            ) from None
        if error.errno == errno.EACCES:
            raise HostError(
                f"port {port} of {address} cannot be used: {error.strerror}",
                "name one from 1024 on, or none: --port N",
            ) from None
        raise _not_here(address, str(error.strerror)) from None


def _not_here(address: str, why: str) -> HostError:
    return HostError(
        f"{address} is not an address of this machine: {why}",
        "leave --host out for 127.0.0.1; --host 0.0.0.0 is every address of this machine",
    )


def event(kind: str, data: str) -> bytes:
    """A message of a stream of server-sent events; `data` has no line break."""
    return f"event: {kind}\ndata: {data}\n\n".encode()


def stream(pieces: Iterator[bytes]) -> Response:
    """A response that lasts until the page is closed."""
    return Response(pieces, EVENTS)
