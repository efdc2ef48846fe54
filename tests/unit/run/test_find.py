"""Which engine has the cluster that a command names."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from cluster_kit.run.find import reach
from cluster_kit.workspace import Workspace
from tests.fakes.hosts import fake_host


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
def engines() -> tuple[Has, Has]:
    return Has(["a"]), Has(["a", "b"])


def found(engines: tuple[Has, Has], reference: str | None, root: Path, *on: str) -> Has:
    """Returns the engine that `reach` finds on a host with these: Docker's own, and its swarm."""

    def connect(engine: str = "compose", _settings: Any = None) -> Any:
        return engines[engine == "swarm"]

    host = replace(fake_host(), connect=connect)
    return reach(host, reference, Workspace(root), *on)  # type: ignore[return-value]


def test_a_cluster_is_found_on_its_engine(engines: tuple[Has, Has], tmp_path: Path) -> None:
    here, there = engines
    assert found(engines, "b", tmp_path) is there
    assert found(engines, "a", tmp_path) is here, "this host comes first"
    assert found(engines, "a", tmp_path, "swarm") is there
    assert found(engines, "gone", tmp_path) is here
    assert found(engines, None, tmp_path) is here
    here.up.clear()
    assert found(engines, "", tmp_path) is there, "the only engine that has any"


def test_a_cluster_that_is_up_is_found_without_its_manifest(
    engines: tuple[Has, Has], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cluster_kit.manifest.load", None)
    assert found(engines, "a", tmp_path) is engines[0]


def test_a_manifest_names_its_cluster(engines: tuple[Has, Has], tmp_path: Path) -> None:
    (tmp_path / "compose").mkdir()
    (tmp_path / "compose" / "job.toml").write_text('format = 1\nname = "b"\n')
    assert found(engines, "job", tmp_path) is engines[1]


def test_only_a_manager_of_a_swarm_is_asked(engines: tuple[Has, Has], tmp_path: Path) -> None:
    engines[0].manages = False
    assert found(engines, "b", tmp_path) is engines[0]
