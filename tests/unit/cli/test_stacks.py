"""`stacks` asks each running task, and reports the others."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from tests.fakes.hosts import Machine
from tests.unit.cli.clusters_up import ClustersUp
from tests.unit.command_line import Cli
from tests.unit.stories import container

IN = 'Thread 0x7f01 (most recent call first):\n  File "/program/[red]train.py", line 3 in wait\n'


@dataclass
class FakeEngine(ClustersUp):
    asked: list[tuple[str, Sequence[str]]] = field(default_factory=list)

    def ask(self, container_id: str, command: Sequence[str], within_s: int) -> str:
        assert within_s > 2
        self.asked.append((container_id, command))
        return "" if container_id.startswith("worker-0") else IN


@pytest.fixture(autouse=True)
def engine(machine: Machine) -> FakeEngine:
    fake = FakeEngine()
    machine.connects(lambda: fake)
    fake.up["demo"] = [
        replace(container(name), id=name, state=state)
        for name, state in (
            ("chief-0", "running"), ("worker-0", "running"), ("worker-1", "paused"),
            ("ps-0", "exited"),
        )
    ]  # fmt: skip
    return fake


def test_every_task_is_shown(cli: Cli, engine: FakeEngine) -> None:
    result = cli("stacks", "demo")
    assert result.code == 0
    assert f"== chief-0\n{IN}" in result.out
    assert "== worker-0\nno answer in time" in result.out
    assert "== worker-1\npaused: its threads stand where they were" in result.out
    assert "== ps-0\nended: nothing runs" in result.out
    assert len(engine.asked) == 2


def test_the_stacks_of_some_tasks_as_json(cli: Cli) -> None:
    result = cli("stacks", "demo", "chief-0", "--json")
    assert json.loads(result.out) == {"chief-0": IN}


def test_an_unknown_task_and_a_cluster_that_is_not_up(cli: Cli, engine: FakeEngine) -> None:
    result = cli("stacks", "demo", "worker-9")
    assert result.code == 2 and "task worker-9 was not found" in result.err
    engine.up.clear()
    result = cli("stacks", "demo")
    assert result.code == 3 and "no task of demo is running" in result.err
