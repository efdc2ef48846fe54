"""Completion by Tab is fast, prints only words, and prints nothing if anything fails."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from cluster_kit.cli import app, manifest_options
from cluster_kit.errors import HostError
from cluster_kit.platforms.engine import ContainerSummary
from cluster_kit.workspace import new_run
from tests.fakes.hosts import Machine
from tests.unit.command_line import Cli

Tab = Callable[[str], list[str]]


@pytest.fixture
def tab(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Tab:
    """Returns the words that a shell gets for the end of a line after Tab."""

    def press(line: str) -> list[str]:
        words = f"cluster-kit {line}".split(" ")
        monkeypatch.setenv("_CLUSTER_KIT_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", " ".join(words))
        monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
        result = cli()
        assert (result.code, result.err) == (0, "")
        return result.out.split()

    return press


class Engine:
    """Two clusters, one of which runs in another directory."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def glance(self) -> list[ContainerSummary]:
        here, there = str(self.root / "runs" / "demo" / "1" / "output"), "/else/runs/other/1/output"
        return [
            ContainerSummary("1", "demo", "", "chief-0", "chief", "running", here),
            ContainerSummary("2", "demo", "", "ps-0", "ps", "running", here),
            ContainerSummary("3", "other", "", "worker-7", "worker", "running", there),
        ]

    def close(self) -> None:
        print("a library prints as it closes")


def test_manifests_and_verbs(tab: Tab) -> None:
    assert tab("up dem") == ["demo"]
    assert {"demo", "quickstart"} <= set(tab("render "))
    assert tab("stac") == ["stacks"]
    assert tab("no-such-verb x") == []


def test_clusters_that_are_up_and_their_tasks(tab: Tab, root: Path, machine: Machine) -> None:
    machine.connects(lambda: Engine(root))
    assert tab("attach ") == ["demo", "other"]
    assert tab("exec --name o") == ["other"]
    assert tab("exec ") == ["chief-0", "ps-0"], "of this directory's cluster"
    assert tab("exec --name other ") == ["worker-7"]
    assert tab("logs other w") == ["worker-7"]
    assert tab("logs demo chief-0 p") == ["ps-0"]


def test_runs(tab: Tab, root: Path) -> None:
    run = new_run(root / "runs" / "demo", datetime(2026, 11, 22, 11))
    assert run.output.is_dir()
    assert tab("report d") == ["demo", "demo/20261122-110000"]
    assert tab("runs diff demo demo/") == ["demo/20261122-110000"]


def test_nothing_is_printed_if_the_engine_fails(tab: Tab, machine: Machine) -> None:
    def fails() -> None:
        print("warning", file=sys.stderr)
        raise HostError("no Docker engine answers", "start it")

    machine.connects(fails)
    assert tab("attach ") == tab("exec ") == []


def test_completion_does_not_wait_for_a_hanging_engine(
    tab: Tab, monkeypatch: pytest.MonkeyPatch, machine: Machine
) -> None:
    over = threading.Event()
    machine.connects(over.wait)
    monkeypatch.setattr(manifest_options, "WITHIN_S", 0.1)
    began = time.monotonic()
    try:
        assert tab("attach ") == []
        assert time.monotonic() - began < 20
    finally:
        over.set()


def test_only_the_module_of_the_verb_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("_CLUSTER_KIT_COMPLETE", raising=False)
    assert app.typed(["up", "demo"]) == ["up", "demo"]
    monkeypatch.setenv("_CLUSTER_KIT_COMPLETE", "complete_zsh")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "cluster-kit attach d")
    assert app.typed([]) == ["attach", "d"]
