"""Real engine, real containers. Every cluster has a name of its own, so that this suite can run
twice at once, and is removed by its label whatever happens."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
import pytest
from docker.errors import DockerException

from cluster_kit import labels
from cluster_kit.image import image_present, image_tag

ROOT = Path(__file__).resolve().parents[2]
RUN_TIMEOUT_S = 240


def _why_not() -> str:
    try:
        docker.from_env().ping()
    except DockerException as error:
        return f"no Docker engine answers ({error}); `make engine` starts one"
    if not image_present(image_tag("cpu")):
        return "the trainer image is not built; `make image` builds it"
    return ""


WHY_NOT = _why_not()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.engine)
            if WHY_NOT:
                item.add_marker(pytest.mark.skip(reason=WHY_NOT))


@dataclass(frozen=True)
class Kit:
    """A workspace of its own, and the kit's command in it."""

    root: Path
    name: str

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "160"}

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "cluster_kit", *arguments]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments),
            cwd=self.root,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=RUN_TIMEOUT_S,
            check=False,
        )

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(*arguments),
            cwd=self.root,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def program(self, text: str) -> str:
        """A program of the user's, in a folder of its own; returns its path."""
        path = self.root / "mine" / "train.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return str(path)

    def outcome(self, name: str = "") -> dict[str, Any]:
        path = self.root / "runs" / (name or self.name) / "latest" / "outcome.json"
        found: dict[str, Any] = json.loads(path.read_text())
        return found


@pytest.fixture
def client() -> Iterator[docker.DockerClient]:
    client = docker.from_env()
    yield client
    client.close()


@pytest.fixture
def kit(tmp_path: Path, client: docker.DockerClient) -> Iterator[Kit]:
    """A workspace with the kit's own manifests; clusters whose names begin alike are removed."""
    shutil.copytree(ROOT / "compose", tmp_path / "compose", ignore=_only_manifests)
    made = Kit(tmp_path, f"e2e-{secrets.token_hex(4)}")
    yield made
    remove(client, made.name)


def _only_manifests(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if (Path(folder) / name).is_dir()]


def mine(client: docker.DockerClient, name: str) -> tuple[list[Any], list[Any]]:
    """(containers, networks) of the clusters whose names begin with `name`."""
    marked = {"label": labels.CLUSTER}
    containers = [
        c
        for c in client.containers.list(all=True, filters=marked, ignore_removed=True)
        if c.labels[labels.CLUSTER].startswith(name)
    ]
    networks = [
        n
        for n in client.networks.list(filters=marked)
        if (n.attrs.get("Labels") or {}).get(labels.CLUSTER, "").startswith(name)
    ]
    return containers, networks


def remove(client: docker.DockerClient, name: str) -> None:
    containers, networks = mine(client, name)
    for container in containers:
        container.remove(force=True, v=True)
    for network in networks:
        network.remove()
