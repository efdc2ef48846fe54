"""Errors of an engine that is lost, or refuses, have its own message."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import docker
import pytest
import requests
import urllib3
from docker.errors import APIError, DockerException

from cluster_kit.errors import EngineError, HostError
from cluster_kit.platforms.docker.docker_engine import DockerEngine
from cluster_kit.platforms.engine import Engine, Helper, Inventory, Reaches
from tests.unit.platforms.docker.test_client import connected

CONNECTS = DockerEngine.__init__
"""As outside of unit tests, in which nothing connects."""


class Broken:
    """An SDK that raises one error for every call."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __getattr__(self, _name: str) -> Broken:
        return self

    def __call__(self, *_: object, **__: object) -> Any:
        raise self._error


CALLS: dict[str, Callable[[DockerEngine], object]] = {
    "info": lambda e: e.info(),
    "networks": lambda e: e.networks(),
    "clusters": lambda e: e.clusters(),
    "containers": lambda e: e.containers("demo"),
    "sidecars": lambda e: e.sidecars("demo"),
    "glance": lambda e: e.glance(),
    "events": lambda e: list(e.events("demo", 0.0)),
    "gpus_taken": lambda e: e.gpus_taken(),
    "gpus_reserved": lambda e: e.gpus_reserved(),
    "gpu_refusal": lambda e: e.gpu_refusal("nvidia", "0"),
    "lines": lambda e: list(e.lines("id")),
    "follow": lambda e: list(e.follow("id")),
    "comes_back": lambda e: e.comes_back("id", 1.0),
    "ask": lambda e: e.ask("id", ["ls"], 5),
    "execute": lambda e: e.execute("id", ["ls"]),
    "detach": lambda e: e.detach("id", "demo"),
    "limit_cpus": lambda e: e.limit_cpus("id", 0.5),
    "weigh_as_usual": lambda e: e.weigh_as_usual("id"),
    "memory_used": lambda e: e.memory_used("id"),
    "limit_memory": lambda e: e.limit_memory("id", 2**30, swap=True),
    "start_helper": lambda e: e.start_helper("demo", Helper("image", ("true",))),
    "freeze": lambda e: e.freeze("id"),
    "thaw": lambda e: e.thaw("id"),
    "kill": lambda e: e.kill("id"),
    "attach": lambda e: e.attach("id", "demo", "worker-0", "10.0.0.5"),
    "end": lambda e: e.end("id"),
    "start_again": lambda e: e.start_again("id"),
    "identity": lambda e: e.identity(),
    "stop": lambda e: e.stop("demo"),
    "remove": lambda e: e.remove("demo"),
}
LOST = (
    requests.exceptions.ConnectionError("Connection aborted"),
    requests.exceptions.ReadTimeout("Read timed out"),
    urllib3.exceptions.ProtocolError("Connection broken"),
    DockerException("Error while fetching server API version"),
    ConnectionResetError("Connection reset by peer"),
)


def test_every_method_of_the_interface_is_tested_here() -> None:
    methods = {
        name
        for protocol in (Engine, Inventory, Reaches)
        for name, _ in inspect.getmembers(protocol, inspect.isfunction)
    }
    assert {name for name in methods if not name.startswith("_")} == {*CALLS, "answers", "close"}


def test_a_lost_engine_is_an_engine_error_with_its_message(
    subtests: pytest.Subtests,
) -> None:
    for error, method in itertools.product(LOST, CALLS):
        with subtests.test(error=error, method=method):
            with pytest.raises(EngineError, match=f"does not answer: {error}") as caught:
                CALLS[method](connected(Broken(error)))
            assert "cluster-kit down NAME" in caught.value.hint


def test_a_refusal_is_reported_with_the_engines_message(subtests: pytest.Subtests) -> None:
    for method in CALLS:
        with subtests.test(method=method):
            refused = APIError("500 Server Error", explanation="no space left on device")
            with pytest.raises(EngineError, match="refused: no space left on device") as caught:
                CALLS[method](connected(Broken(refused)))
            assert "docker system df" in caught.value.hint


@pytest.mark.parametrize("error", [LOST[0], LOST[3], LOST[4]], ids=lambda e: type(e).__name__)
def test_if_no_engine_answers_the_hint_is_make_engine(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(docker, "from_env", lambda **_: Broken(error))
    monkeypatch.setattr(DockerEngine, "__init__", CONNECTS)
    with pytest.raises(HostError, match="no Docker engine answers"):
        DockerEngine()


@pytest.mark.parametrize("host", ["", "unix:///run/other.sock"])
def test_a_user_without_access_to_the_engine_gets_a_fix(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "('Connection aborted.', PermissionError(13, 'Permission denied'))"
    error = DockerException(f"Error while fetching server API version: {words}")
    monkeypatch.setenv("DOCKER_HOST", host)
    monkeypatch.setattr(docker, "from_env", lambda **_: Broken(error))
    monkeypatch.setattr(DockerEngine, "__init__", CONNECTS)
    with pytest.raises(HostError, match="this user has no access to the Docker engine") as told:
        DockerEngine()
    assert told.value.message.endswith(host or "/var/run/docker.sock")
    assert "usermod -aG docker $USER" in told.value.hint and "log in again" in told.value.hint


class Requests:
    """Replaces the SDK's session; it sends nothing."""

    base_url = "http+docker://localhost"
    send = None


def test_an_engine_answers_or_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, limits = connected(SimpleNamespace()), []

    def asks(sdk: object) -> bool:
        monkeypatch.setattr(docker, "from_env", lambda timeout, **_: limits.append(timeout) or sdk)
        return engine.answers()

    assert asks(SimpleNamespace(ping=lambda: True, close=lambda: None, api=Requests()))
    assert not asks(SimpleNamespace(ping=Broken(LOST[0]).ping, close=lambda: None, api=Requests()))
    assert limits == [3, 3], "one that hangs is not waited for"
