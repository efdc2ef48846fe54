"""A client of the Debug Adapter Protocol, as far as tests need it."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

TIMEOUT_S = 60.0


class Debugger:
    """A debugger that attaches to a program waiting on 127.0.0.1; use it in `with`."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
        self._read = self._socket.makefile("rb")
        self._count = 0

    def __enter__(self) -> Debugger:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def stop_at(self, here: Path, line: int) -> int:
        """Let the program start and run to a line of a local file; returns its innermost frame."""
        self.ask("initialize", adapterID="test", pathFormat="path")
        self._send(
            "attach", pathMappings=[{"localRoot": str(here.parent), "remoteRoot": "/program"}]
        )
        self.until("event", "initialized")
        self.ask("setBreakpoints", source={"path": str(here)}, breakpoints=[{"line": line}])
        self._send("configurationDone")
        self.thread = self.until("event", "stopped")["threadId"]
        frame = self.ask("stackTrace", threadId=self.thread)["stackFrames"][0]
        assert (frame["source"]["path"], frame["line"]) == (str(here), line)
        return int(frame["id"])

    def ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Returns the answer to a request."""
        self._send(command, **arguments)
        return self.until("response", command)

    def until(self, kind: str, name: str) -> dict[str, Any]:
        """Read messages up to the first of this kind and name; returns its body."""
        while True:
            size = 0
            while header := self._read.readline().strip():
                size = int(header.partition(b":")[2])
            message = json.loads(self._read.read(size))
            if (message["type"], message.get("event") or message.get("command")) == (kind, name):
                assert message.get("success", True), message
                body: dict[str, Any] = message.get("body") or {}
                return body

    def _send(self, command: str, **arguments: Any) -> None:
        self._count += 1
        message = {"seq": self._count, "type": "request", "command": command}
        text = json.dumps({**message, "arguments": arguments}).encode()
        self._socket.sendall(b"Content-Length: %d\r\n\r\n%s" % (len(text), text))
