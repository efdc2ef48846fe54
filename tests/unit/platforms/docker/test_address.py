"""The SDK uses the same engine as `docker`."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import docker
import pytest

from cluster_kit.platforms.docker.docker_connection import address, sdk

SOCKET = "unix:///run/user/1000/docker.sock"


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Docker's configuration with the current context `rootless`."""
    for name in ("DOCKER_HOST", "DOCKER_CONTEXT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    meta = tmp_path / "contexts" / "meta" / hashlib.sha256(b"rootless").hexdigest() / "meta.json"
    meta.parent.mkdir(parents=True)
    endpoints = {"docker": {"Host": SOCKET, "SkipTLSVerify": False}}
    meta.write_text(json.dumps({"Name": "rootless", "Metadata": {}, "Endpoints": endpoints}))
    (tmp_path / "config.json").write_text(json.dumps({"currentContext": "rootless"}))
    return tmp_path


class Sdk:
    """Replaces the SDK, and records the variables with which it was created."""

    def __init__(self, made: list[dict[str, str]]) -> None:
        self._made, self.api, self.send = made, self, None
        self.base_url, self.trust_env = "http+docker://localhost", True

    def __call__(self, environment: dict[str, str], **_options: object) -> Sdk:
        self._made.append(environment)
        return self


def test_the_current_context_is_used(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert address() == SOCKET
    asked: list[dict[str, str]] = []
    monkeypatch.setattr(docker, "from_env", Sdk(asked))
    client = sdk(timeout=1)
    assert asked[0]["DOCKER_HOST"] == SOCKET
    assert not client.api.trust_env, "no proxy is looked for at each request"


def test_docker_host_overrides_the_context_and_a_named_context_is_used(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_CONTEXT", "default")
    assert address() == ""
    monkeypatch.setenv("DOCKER_HOST", "tcp://10.0.0.7:2375")
    assert address() == "tcp://10.0.0.7:2375"


def test_a_removed_context_is_left_to_docker(config: Path) -> None:
    (config / "config.json").write_text(json.dumps({"currentContext": "gone"}))
    assert address() == ""
