"""Serves the API server of Kubernetes in this process on 127.0.0.1, with a kubeconfig for it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from tests.fakes.kubernetes import FakeKubernetes


@contextmanager
def serving(fake: FakeKubernetes, kubeconfig: Path) -> Iterator[FakeKubernetes]:
    """Serve on 127.0.0.1, with a kubeconfig for it."""
    guard = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(size) or b"{}")
            query = {key: values[0] for key, values in parse_qs(urlsplit(self.path).query).items()}
            with guard:
                status, found = fake.answer(self.command, self.path, query, body)
                data = (found if isinstance(found, str) else json.dumps(found)).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PATCH = do_DELETE = _serve

        def log_message(self, *_arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    kubeconfig.write_text(config(f"http://127.0.0.1:{server.server_port}"), encoding="utf-8")
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()


def config(server: str) -> str:
    """Returns a kubeconfig with one cluster."""
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "contexts": [
                {"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "mine"}}
            ],
            "current-context": "x",
        }
    )
