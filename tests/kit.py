"""The kit's command in a temporary workspace, and what it left on an engine: for tests that start
real containers."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import docker
import pytest
from docker.errors import DockerException

from cluster_kit import labels
from cluster_kit.image.kit_image import image_present, image_tag
from cluster_kit.this_host import this_host
from tests.make import ROOT

RUN_TIMEOUT_S = 420


def why_no_engine() -> str:
    """Returns why no test can start containers here; "" if they can."""
    try:
        docker.from_env().ping()
    except DockerException as error:
        return f"no Docker engine answers ({error}); `make engine` starts one"
    if not image_present(this_host(), image_tag("cpu")):
        return "the trainer image is not built; `make image` builds it"
    return ""


def mark_engine_tests(items: list[pytest.Item], folder: Path, why_not: str) -> None:
    """Mark the tests below `folder`, and skip them with the reason if they cannot run."""
    for item in items:
        if folder in item.path.parents:
            item.add_marker(pytest.mark.engine)
            if why_not:
                item.add_marker(pytest.mark.skip(reason=why_not))


@dataclass(frozen=True)
class Kit:
    """A temporary workspace, and the kit's command in it."""

    root: Path
    name: str
    extra: Mapping[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "160", **self.extra}

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
        """Write a user's program in a new folder; returns its path."""
        path = self.root / "mine" / "train.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return str(path)

    def outcome(self, name: str = "") -> dict[str, Any]:
        path = self.root / "runs" / (name or self.name) / "latest" / "outcome.json"
        found: dict[str, Any] = json.loads(path.read_text())
        return found


def new_kit(root: Path, prefix: str, **extra: str) -> Kit:
    """Returns a workspace with the kit's own manifests, and a unique cluster name.

    Args:
        extra: environment variables of the command.
    """
    shutil.copytree(ROOT / "compose", root / "compose", ignore=_only_manifests)
    return Kit(root, f"{prefix}-{secrets.token_hex(4)}", extra)


def with_runs_of(other: Kit, kit: Kit) -> None:
    """Give a cluster a copy of another one's runs, to continue them."""
    shutil.copytree(other.root / "runs" / other.name, kit.root / "runs" / kit.name, symlinks=True)


def _only_manifests(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if (Path(folder) / name).is_dir()]


def mine(client: docker.DockerClient, name: str) -> tuple[list[Any], list[Any]]:
    """Returns (containers, networks) of the clusters whose names begin with `name`."""
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


def boards(client: docker.DockerClient, name: str) -> list[Any]:
    """Returns the TensorBoards that show runs of such clusters; a failed test may have left one."""
    found = client.containers.list(all=True, filters={"label": labels.BOARD}, ignore_removed=True)
    return [one for one in found if one.labels[labels.BOARD].startswith(name)]


def remove(client: docker.DockerClient, name: str) -> None:
    containers, networks = mine(client, name)
    for container in [*containers, *boards(client, name)]:
        container.remove(force=True, v=True)
    for network in networks:
        network.remove()
