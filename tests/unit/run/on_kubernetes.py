"""A workspace whose clusters run on an API server of Kubernetes in this process."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cluster_kit.platforms.engine import Engine
from cluster_kit.platforms.kubernetes import kubernetes_engine, kubernetes_start
from cluster_kit.platforms.platform import connect
from cluster_kit.run import watch
from tests.fakes.hosts import Machine, no_engine
from tests.fakes.kubernetes import FakeKubernetes
from tests.fakes.kubernetes_server import serving

ENDS = {"event": "end", "exit_code": 0, "reason": "finished", "message": "done", "tasks": []}
UP = ("up", "demo", "--engine", "kubernetes")


def only_kubernetes(engine: str = "compose", settings: Mapping[str, Any] | None = None) -> Engine:
    """Connects to the API server; there is no Docker engine."""
    return no_engine() if engine == "compose" else connect(engine, settings)


@pytest.fixture
def fake(root: Path, monkeypatch: pytest.MonkeyPatch, machine: Machine) -> Iterator[FakeKubernetes]:
    text = 'format = 1\nname = "demo"\nworker = 2\nps = 1\n'
    (root / "compose" / "demo.toml").write_text(text)
    monkeypatch.setenv("KUBECONFIG", str(root / "kubeconfig"))
    for module in (kubernetes_start, kubernetes_engine, kubernetes_engine, watch):
        monkeypatch.setattr(module, "POLL_S", 0.02)
    monkeypatch.setattr(kubernetes_engine, "SYNC_S", 0.0)
    machine.host = replace(machine.host, connect=only_kubernetes)
    machine.locks_in(root)
    monkeypatch.setattr("cluster_kit.platforms.engine.FOLLOW_S", 0.02)
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
