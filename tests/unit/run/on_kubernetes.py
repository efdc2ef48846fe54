"""A workspace whose clusters run on an API server of Kubernetes in this process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster_kit.errors import HostError
from cluster_kit.platforms import remote_engine
from cluster_kit.platforms.docker import docker_engine as docker_client
from cluster_kit.platforms.kubernetes import (
    kubernetes_engine,
    kubernetes_start,
    kubernetes_watching,
)
from cluster_kit.run.watching import watch
from tests.fakes.kubernetes import FakeKubernetes
from tests.fakes.kubernetes_server import serving

ENDS = {"event": "end", "exit_code": 0, "reason": "finished", "message": "done", "tasks": []}
UP = ("up", "demo", "--engine", "kubernetes")


def no_docker() -> None:
    raise HostError("no Docker engine answers", "start it")


@pytest.fixture
def fake(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeKubernetes]:
    text = 'format = 1\nname = "demo"\nworker = 2\nps = 1\n'
    (root / "compose" / "demo.toml").write_text(text)
    monkeypatch.setenv("KUBECONFIG", str(root / "kubeconfig"))
    for module in (kubernetes_start, kubernetes_engine, kubernetes_watching, watch):
        monkeypatch.setattr(module, "POLL_S", 0.02)
    monkeypatch.setattr(kubernetes_watching, "SYNC_S", 0.0)
    monkeypatch.setattr(docker_client, "connect", no_docker)
    monkeypatch.setattr(remote_engine, "FOLLOW_S", 0.02)
    monkeypatch.setattr(kubernetes_start, "PATIENCE_S", 0.05)
    monkeypatch.setattr(kubernetes_start, "NODE_PATIENCE_S", 0.05)
    monkeypatch.setattr(kubernetes_start, "MOUNT_PATIENCE_S", 0.05)
    ready = FakeKubernetes(lasts_s=0.1, says={"chief-0": [{"event": "ready"}, ENDS]})
    with serving(ready, root / "kubeconfig") as made:
        yield made


def outcome(root: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((root / "runs/demo/latest/outcome.json").read_text())
    return read


def left(fake: FakeKubernetes) -> set[str]:
    return {kind for kind, _ in fake.objects}
