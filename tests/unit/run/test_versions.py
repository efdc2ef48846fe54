"""The versions that `--version` prints, and what it prints if some are missing."""

from __future__ import annotations

import pytest

from cluster_kit.errors import HostError
from cluster_kit.host import Host
from cluster_kit.platforms.platform import Tool
from cluster_kit.run import bug_report as told
from cluster_kit.util.paths import FILES
from cluster_kit.version import __version__
from tests.fakes.clock import Clock
from tests.fakes.engine import FakeEngine
from tests.fakes.hosts import fake_host

KIT = f"cluster-kit {__version__}, {FILES}"


def with_tool(monkeypatch: pytest.MonkeyPatch, version: tuple[int, ...] | None) -> None:
    tool = Tool("compose", "Docker Compose", version, (2, 20), "no `docker compose`", "install it")

    class Backend:
        def tool(self, _host: Host) -> Tool:
            return tool

    monkeypatch.setattr(told, "platform_of", lambda _engine: Backend())


def test_all_versions_that_exist_are_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    with_tool(monkeypatch, (2, 26, 1))
    engine = FakeEngine(Clock())
    host = fake_host(lambda: engine)
    monkeypatch.setattr(told, "image_present", lambda *_: True)
    version = engine.info()["ServerVersion"]
    assert told.versions(host) == [
        KIT, f"Docker Engine {version}", "Docker Compose 2.26.1",
        "cluster-kit/trainer:cpu-0, built",
    ]  # fmt: skip


def test_missing_programs_are_reported_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> FakeEngine:
        raise HostError("no Docker engine answers: no such file", "start it")

    with_tool(monkeypatch, None)
    monkeypatch.setattr(told, "image_present", lambda *_: False)
    assert told.versions(fake_host(refused)) == [
        KIT, "no Docker engine answers: no such file", "no `docker compose`",
        "cluster-kit/trainer:cpu-0, not built",
    ]  # fmt: skip
