"""Which engine has the cluster that a command line names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cluster_kit.run import reach
from cluster_kit.workspace import Workspace


@dataclass
class Has:
    """An engine with clusters of these names."""

    up: list[str]
    manages: bool = True

    def clusters(self) -> list[str]:
        return self.up

    def info(self) -> dict[str, Any]:
        return {"Swarm": {"ControlAvailable": self.manages}}


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> tuple[Has, Has]:
    here, there = Has(["a"]), Has(["a", "b"])

    monkeypatch.setattr(
        reach, "connect", lambda engine, _namespace="": there if engine == "swarm" else here
    )
    monkeypatch.setattr(reach.docker_engine, "connect", lambda: here)
    return here, there


def test_a_cluster_is_found_where_it_is(engines: tuple[Has, Has], tmp_path: Path) -> None:
    here, there = engines
    workspace = Workspace(tmp_path)
    assert reach.reach("b", workspace) is there
    assert reach.reach("a", workspace) is here, "this host comes first"
    assert reach.reach("a", workspace, "swarm") is there
    assert reach.reach("gone", workspace) is here
    assert reach.reach(None, workspace) is here
    here.up.clear()
    assert reach.reach("", workspace) is there, "the only engine that has any"


def test_a_manifest_names_its_cluster(engines: tuple[Has, Has], tmp_path: Path) -> None:
    (tmp_path / "compose").mkdir()
    (tmp_path / "compose" / "job.toml").write_text('format = 1\nname = "b"\n')
    assert reach.reach("job", Workspace(tmp_path)) is engines[1]


def test_only_a_manager_is_asked(engines: tuple[Has, Has], tmp_path: Path) -> None:
    engines[0].manages = False
    assert reach.reach("b", Workspace(tmp_path)) is engines[0]
