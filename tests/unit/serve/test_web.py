"""Which route answers which request."""

from __future__ import annotations

import pytest

from cluster_kit.serve.server import Refused, Request, Response, Route, answer, as_json

ROUTES = (
    Route("GET", "/", lambda _request, _parts: Response(b"all")),
    Route("GET", "/run/{cluster}/{run}", lambda _request, parts: as_json(dict(parts))),
    Route("POST", "/task/{task}", lambda request, _parts: Response(request.method.encode())),
)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/", b"all"),
        ("HEAD", "/", b"all"),
        ("GET", "/run/a.b/2026-1", b'{"cluster": "a.b", "run": "2026-1"}'),
        ("POST", "/task/worker-1", b"POST"),
    ],
)
def test_the_matching_route_answers(method: str, path: str, body: bytes) -> None:
    assert answer(ROUTES, Request(method, path)).body == body


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/runs", 404),
        ("GET", "/run/only-one", 404),
        ("GET", "/run/a/b/c", 404),
        ("GET", "/task/worker-1", 405),
        ("POST", "/", 405),
    ],
)
def test_anything_else_is_refused(method: str, path: str, status: int) -> None:
    with pytest.raises(Refused) as refused:
        answer(ROUTES, Request(method, path))
    assert refused.value.status == status and path in refused.value.sentence
