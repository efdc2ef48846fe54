"""What the tests of `render` share: a manifest, another host, a user's program."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_kit.facts import HostFacts
from cluster_kit.run import prepare
from tests.make import gpus, host, network
from tests.unit.command_line import MANIFEST, Cli

PORTABLE = "portable/demo/compose.yaml"
ELSEWHERE = host(
    cpus=2,
    memory=2**30,
    user="0:0",
    gpus=gpus(3),
    networks=(network("172.16.0.0/12"), network("10.0.0.0/8")),
)


def on(monkeypatch: pytest.MonkeyPatch, facts: HostFacts) -> None:
    monkeypatch.setattr(prepare, "gather", lambda *_: facts)


def manifest(root: Path, more: str) -> None:
    (root / "compose" / "demo.toml").write_text(MANIFEST + more)


@pytest.fixture
def mine(root: Path) -> Path:
    """Write a user's program and data into the workspace."""
    for folder in ("programs/mine", "data"):
        (root / folder).mkdir(parents=True)
    (root / "programs/mine/train.py").write_text("print(1)\n")
    manifest(root, 'program = "../programs/mine/train.py"\ndata = "../data"\n')
    return root


def stale(cli: Cli, *words: str) -> str:
    result = cli("render", "demo", *words, "--check")
    assert result.code == 2, result.err
    assert "cluster-kit render demo" in result.err and "--diff" in result.err
    return next(line for line in result.err.splitlines() if "is stale" in line).split("stale: ")[1]
