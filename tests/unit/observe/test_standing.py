"""How a cluster stands: its containers, and the newest figures of their progress files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from cluster_kit.engine.containers import Container
from cluster_kit.engine.interface import Engine
from cluster_kit.observe.standing import standing
from tests.unit.stories import container


class FakeEngine:
    def __init__(self, *containers: Container) -> None:
        self._containers = list(containers)

    def containers(self, _cluster: str) -> list[Container]:
        return self._containers


def tasks(*containers: Container) -> list[Any]:
    return standing(cast(Engine, FakeEngine(*containers)), "demo")


def test_the_newest_figures_stand_beside_the_containers_state(tmp_path: Path) -> None:
    (tmp_path / "progress").mkdir()
    lines = [
        {"time": 1, "event": "step", "step": 10, "loss": 0.9},
        {"time": 2, "event": "step", "step": 20, "loss": "odd"},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "progress" / "chief-0.jsonl").write_text(text)
    chief, worker = tasks(
        container("chief-0", output=str(tmp_path), state="running", exit_code=None),
        container("worker-0", output=str(tmp_path), restarts=2),
    )
    assert (chief.state, chief.step, chief.loss) == ("running", 20, 0.9)
    assert (worker.step, worker.restarts, worker.exit_code) == (None, 2, 137)


def test_a_cluster_that_is_not_up_has_no_tasks() -> None:
    assert tasks() == []


def test_an_output_directory_that_is_gone_costs_the_figures_only() -> None:
    (task,) = tasks(container("ps-0", output="/nowhere/at/all"))
    assert (task.name, task.step) == ("ps-0", None)
