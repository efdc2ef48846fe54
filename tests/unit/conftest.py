"""Unit tests cannot reach Docker, nor start a program: both fail with a message that says so."""

from __future__ import annotations

import subprocess
from typing import Any, NoReturn

import docker
import pytest

import cluster_kit.engine


def _refuse(what: str) -> Any:
    def refuse(*arguments: object, **_options: object) -> NoReturn:
        shown = " ".join(str(argument) for argument in arguments[:1])
        pytest.fail(f"a unit test {what} ({shown}): give it a fake, or move it to tests/e2e")

    return refuse


@pytest.fixture(autouse=True)
def no_docker_no_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    connects = _refuse("connects to the Docker engine")
    monkeypatch.setattr(docker, "from_env", connects)
    monkeypatch.setattr(docker, "DockerClient", connects)
    monkeypatch.setattr(docker, "APIClient", connects)
    monkeypatch.setattr(cluster_kit.engine.Engine, "__init__", connects)
    monkeypatch.setattr(subprocess, "Popen", _refuse("starts a program"))
