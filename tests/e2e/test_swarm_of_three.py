"""On a real swarm of three nodes, each an engine of the tests' own: runs, crashes, a lost node."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster_kit.image.build import image_tag
from tests.e2e import nodes
from tests.e2e.nodes import Swarm
from tests.kit import Kit, new_kit

pytestmark = [
    pytest.mark.slow,  # three engines, and clusters that wait for a swarm's own times
    pytest.mark.xdist_group("swarm-of-three"),
    pytest.mark.skipif(bool(nodes.why_not()), reason=nodes.why_not() or "-"),
]
WITHIN_S = 180


@pytest.fixture(scope="module")
def three() -> Iterator[Swarm]:
    with nodes.swarm([image_tag("cpu")]) as made:
        yield made


@pytest.fixture
def kit(three: Swarm, tmp_path: Path) -> Kit:
    return new_kit(tmp_path / "ws", "three", DOCKER_HOST=three.manager.host)


def nothing_is_left(swarm: Swarm) -> None:
    for listed in (("service", "ls"), ("config", "ls"), ("secret", "ls")):
        assert swarm.manager.said(*listed, "-q") == "", listed
    for node in swarm.alive:
        _wait_for(lambda node=node: node.said("ps", "-aq") == "")
        assert "cluster-kit" not in node.said("network", "ls")


def test_quickstart_runs_on_three_nodes(three: Swarm, kit: Kit) -> None:
    up = kit.start("up", "quickstart", "--engine", "swarm", "--name", kit.name,
                   "--args", "--epochs 12")  # fmt: skip
    _wait_for(lambda: steps_of(kit) > 0, up)
    on = {node.name: int(node.said("ps", "-q").count("\n")) + 1 for node in three.nodes}
    told, _ = up.communicate(timeout=WITHIN_S)
    assert up.returncode == 0, told
    assert kit.outcome()["success"] and sum(on.values()) == 6 and min(on.values()) >= 1, on
    nothing_is_left(three)


def test_a_worker_and_a_ps_whose_node_dies_come_back_on_another(tmp_path: Path) -> None:
    with nodes.swarm([image_tag("cpu")]) as swarm:
        kit = started_with(
            swarm, tmp_path, chief=MANAGER, evaluator=BESIDE, worker=OTHERS, ps=OTHERS
        )
        up = kit.start("up", kit.name, "--args", "--epochs 30")
        _wait_for(lambda: epochs_of(kit) >= 2, up)
        lost = swarm.nodes[2]
        on_it = [n for n in ("worker-0", "worker-1", "ps-0", "ps-1") if swarm.has(lost, n)]
        lost.cut_power()
        told, _ = up.communicate(timeout=WITHIN_S)
        assert up.returncode == 0, told
        outcome = kit.outcome()
        tasks = {task["name"]: task for task in outcome["tasks"]}
        assert len(on_it) == 2 and all(tasks[name]["restarts"] == 1 for name in on_it), tasks
        (note,) = [note for note in outcome["notes"] if "went down" in note]
        assert lost.name in note and all(name in note for name in on_it)
        resumed = [one for one in told_by(kit, "chief-0") if one["event"] == "start"]
        assert len(resumed) == 2, "the chief's program goes on from its last checkpoint"
        first = next(one for one in told_by(kit, "chief-0")
                     if "epoch" in one and one["time"] > resumed[1]["time"])  # fmt: skip
        assert first["epoch"] > 1
        nothing_is_left(swarm)


def test_a_leader_whose_node_dies_goes_on_on_another(tmp_path: Path) -> None:
    with nodes.swarm([image_tag("cpu")]) as swarm:
        kit = started_with(
            swarm, tmp_path, chief=OTHERS, evaluator=MANAGER, worker=MANAGER, ps=MANAGER
        )
        up = kit.start("up", kit.name, "--args", "--epochs 20")
        _wait_for(lambda: epochs_of(kit) >= 2, up)
        (lost,) = [node for node in swarm.nodes if swarm.has(node, "chief-0")]
        lost.cut_power()
        told, _ = up.communicate(timeout=WITHIN_S)
        assert up.returncode == 0, told
        assert f"the node {lost.name} went down, with chief-0" in str(kit.outcome()["notes"])
        nothing_is_left(swarm)


@pytest.mark.parametrize("task", ["chief-0", "worker-0"])
def test_a_task_that_no_other_node_takes_ends_the_run_with_its_node(
    tmp_path: Path, task: str
) -> None:
    with nodes.swarm([image_tag("cpu")]) as swarm:
        alone = {"chief": MANAGER, "worker": MANAGER, task.partition("-")[0]: BESIDE}
        kit = started_with(swarm, tmp_path, **alone, evaluator=MANAGER, ps=MANAGER)
        up = kit.start("up", kit.name, "--args", "--epochs 200")
        _wait_for(lambda: epochs_of(kit) >= 2, up)
        swarm.nodes[1].cut_power()
        told, _ = up.communicate(timeout=WITHIN_S)
        outcome = kit.outcome()
        assert up.returncode == 6, told
        assert outcome["blame"].startswith(task.partition("-")[0]), outcome
        assert "its node node-1 is down" in outcome["message"]
        nothing_is_left(swarm)


MANAGER, BESIDE, OTHERS = "node.role==manager", "node.hostname==node-1", "node.role!=manager"


def started_with(swarm: Swarm, tmp_path: Path, **where: str) -> Kit:
    """A workspace for this swarm, whose manifest is the quickstart with these nodes for roles."""
    kit = new_kit(tmp_path / "ws", "dies", DOCKER_HOST=swarm.manager.host)
    change(kit, **where)
    return kit


def change(kit: Kit, **where: str) -> None:
    """Give the quickstart this cluster's name, and each role its nodes."""
    text = (kit.root / "compose" / "quickstart.toml").read_text()
    more = "".join(f'[role.{role}]\nnodes = "{chosen}"\n' for role, chosen in where.items())
    named = text.replace('name = "quickstart"', f'name = "{kit.name}"\nengine = "swarm"')
    (kit.root / "compose" / f"{kit.name}.toml").write_text(named + more)


def epochs_of(kit: Kit) -> int:
    return max((int(one["epoch"]) for one in told_by(kit, "chief-0") if "epoch" in one), default=0)


def steps_of(kit: Kit) -> int:
    """The last step that the leader has told."""
    told = [one["step"] for one in told_by(kit, "chief-0") if "step" in one]
    return int(told[-1]) if told else 0


def told_by(kit: Kit, task: str) -> list[dict[str, Any]]:
    path = kit.root / "runs" / kit.name / "latest" / "output" / "progress" / f"{task}.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def _wait_for(happened: Callable[[], bool], up: subprocess.Popen[str] | None = None) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not happened():
        assert time.monotonic() < deadline
        if up is not None and up.poll() is not None:
            raise AssertionError(f"it has ended ({up.returncode}): {up.communicate()[0]}")
        time.sleep(0.3)
