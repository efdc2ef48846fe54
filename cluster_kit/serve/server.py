"""The HTTP server: Python's own, in threads.

A dozen routes for a few pages of one person need no server that has to be installed and kept up to
date on every machine, and the engine's SDK blocks, as these threads may.
"""

from __future__ import annotations

import contextlib
import errno
import socket
import socketserver
import sys
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from cluster_kit.errors import EngineError, HostError, KitError, UsageError
from cluster_kit.serve.door import refuse
from cluster_kit.serve.web import EVENTS, TEXT, Refused, Request, Response, Route, answer

IDLE_S = 60
"""After so long a connection that says nothing, or takes nothing, is closed."""
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Server(ThreadingHTTPServer):
    """Answers by `routes` whoever has the token; see `listening`."""

    daemon_threads = True

    def __init__(self, address: str, port: int, token: str, routes: Sequence[Route]) -> None:
        found = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
        self.address_family = found[0]
        self.address, self.token, self.routes = address, token, routes
        super().__init__(found[4][:2], _Handler)  # type: ignore[arg-type]

    def server_bind(self) -> None:
        # HTTPServer's own asks DNS for this machine's name, which can take seconds.
        socketserver.TCPServer.server_bind(self)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print the traceback of a bug; a page that was closed meanwhile is none."""
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = IDLE_S
    server: Server

    def do_GET(self) -> None:
        split = urlsplit(self.path)
        request = Request(
            self.command,
            unquote(split.path),
            dict(parse_qsl(split.query)),
            {name.lower(): value for name, value in self.headers.items()},
        )
        with contextlib.suppress(ConnectionError, TimeoutError):
            self._send(_answered(self.server, request))

    do_HEAD = do_POST = do_PUT = do_DELETE = do_GET

    def _send(self, response: Response) -> None:
        # Nothing reads what a request has sent with it: the next one would begin there.
        whole = isinstance(response.body, bytes) and self.command in ("GET", "HEAD")
        self.close_connection = self.close_connection or not whole
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
        """Nothing: the terminal is the live table's."""


def _answered(server: Server, request: Request) -> Response:
    try:
        refuse(request, server.token, server.address, socket.gethostname())
        return answer(server.routes, request)
    except Refused as error:
        return _told(error.status, error.sentence)
    except KitError as error:
        status = 404 if isinstance(error, UsageError) else 409
        status = 503 if isinstance(error, EngineError) else status
        return _told(status, f"{error.message}\n{error.cure}".strip())


def _told(status: int, sentence: str) -> Response:
    return Response(f"{status}: {sentence}\n".encode(), TEXT, status)


@contextlib.contextmanager
def listening(server: Server) -> Iterator[str]:
    """The server answers while the `with` block lasts; its URL, without the token."""
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True)
    thread.start()
    try:
        yield url_of(server)
    finally:
        server.shutdown()
        server.server_close()


def url_of(server: Server) -> str:
    """`http://127.0.0.1:8000`; of one that listens everywhere, this machine's name."""
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
        raise HostError(
            f"{address} is no address of this machine: {error.strerror}",
            "leave --host out for 127.0.0.1; --host 0.0.0.0 is every address of this machine",
        ) from None


def event(kind: str, data: str) -> bytes:
    """A message of a stream of server-sent events; `data` has no line break."""
    return f"event: {kind}\ndata: {data}\n\n".encode()


def stream(pieces: Iterator[bytes]) -> Response:
    """A response that goes on until the page is closed."""
    return Response(pieces, EVENTS)
