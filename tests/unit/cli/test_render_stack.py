"""`render` for a swarm: the files it writes, when they are stale, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.command_line import Cli

FOLDER = Path("compose/demo")


@pytest.fixture(autouse=True)
def _manifest(root: Path) -> None:
    (root / "compose" / "demo.toml").write_text('format = 1\nname = "demo"\n')


def test_it_writes_the_stack_file_and_the_shared_values(root: Path, cli: Cli) -> None:
    result = cli("render", "demo", "--engine", "swarm", "--json")
    facts = json.loads(result.out)
    assert facts["file"] == str(root / FOLDER / "stack.yaml")
    assert set(facts["tasks"].values()) == {""}, "a swarm gives no fixed addresses"
    assert "worker-1:2222" in (root / FOLDER / "cluster.json").read_text()
    assert (root / FOLDER / "output").is_dir()
    assert not (root / FOLDER / "compose.yaml").exists()
    first = (root / FOLDER / "stack.yaml").read_text()
    assert "cluster-kit render demo --engine swarm" in first


def test_a_stale_file_is_reported(root: Path, cli: Cli) -> None:
    render = ("render", "demo", "--engine", "swarm")
    assert "is missing" in cli(*render, "--check").err
    cli(*render)
    assert cli(*render, "--check").code == 0
    assert "written with other options" in cli(*render, "--workers", "3", "--check").err
    beside = root / FOLDER / "cluster.json"
    beside.write_text("{}")
    assert "second file cluster.json was edited" in cli(*render, "--check").err
    beside.unlink()
    assert "second file cluster.json is missing" in cli(*render, "--check").err


def test_a_stack_file_is_not_portable(root: Path, cli: Cli) -> None:
    result = cli("render", "demo", "--engine", "swarm", "--portable")
    assert result.code == 2
    assert "--portable is for Docker Compose" in result.err
    assert not (root / "portable").exists()


def test_an_unknown_engine_is_refused(cli: Cli) -> None:
    result = cli("render", "demo", "--engine", "swam")
    assert result.code == 2
    assert "compose" in result.err
    assert "swarm" in result.err
