"""Requests, responses and routes as values; nothing here knows of sockets. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

HTML, TEXT = "text/html; charset=utf-8", "text/plain; charset=utf-8"
JSON, EVENTS = "application/json", "text/event-stream"


@dataclass(frozen=True)
class Request:
    """What a browser asks; `headers` have lower-case names, `query` the last value of each name."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Response:
    """What is answered; a `body` that is an iterator is sent piece by piece until it ends."""

    body: bytes | Iterator[bytes]
    type: str = HTML
    status: int = 200


class Refused(Exception):
    """A request that is not answered: an HTTP status, and a sentence that says why."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence


Answer = Callable[[Request, Mapping[str, str]], Response]
"""Answers a request; the second argument has the named parts of its path."""


@dataclass(frozen=True)
class Route:
    """Which requests an answer is for: `Route("GET", "/cluster/{name}", …)`."""

    method: str
    path: str
    answer: Answer

    def parts(self, path: str) -> Mapping[str, str] | None:
        """The named parts of a path; None if it is another route's."""
        pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(self.path))
        found = re.fullmatch(pattern, path)
        return found.groupdict() if found else None


def answer(routes: Sequence[Route], request: Request) -> Response:
    """The response of the first route that fits.

    Raises:
        Refused: there is none (404), or none for this method (405).
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
