"""A node of a real swarm of three is lost: whoever was on it goes on elsewhere, or the run ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e import nodes
from tests.e2e.on_swarm import (
    BESIDE,
    IMAGES,
    MANAGER,
    OTHERS,
    end_of,
    epochs_of,
    nothing_is_left,
    started_with,
    told_by,
    wait_for,
)

pytestmark = [
    pytest.mark.slow,  # a swarm notices after ten seconds, and a swarm for each test
    pytest.mark.skipif(bool(nodes.why_not()), reason=nodes.why_not() or "-"),
]


def test_a_worker_and_a_ps_whose_node_dies_come_back_on_another(tmp_path: Path) -> None:
    with nodes.swarm(IMAGES) as swarm:
        kit = started_with(
            swarm, tmp_path, chief=MANAGER, evaluator=BESIDE, worker=OTHERS, ps=OTHERS
        )
        up = kit.start("up", kit.name, "--args", "--epochs 30")
        wait_for(lambda: epochs_of(kit) >= 2, up)
        lost = swarm.nodes[2]
        on_it = [n for n in ("worker-0", "worker-1", "ps-0", "ps-1") if swarm.has(lost, n)]
        lost.cut_power()
        told = end_of(up)
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


@pytest.mark.parametrize("how", ["dies", "cut off"])
def test_a_leader_whose_node_is_lost_goes_on_on_another(tmp_path: Path, how: str) -> None:
    with nodes.swarm(IMAGES) as swarm:
        kit = started_with(
            swarm, tmp_path, chief=OTHERS, evaluator=MANAGER, worker=MANAGER, ps=MANAGER
        )
        up = kit.start("up", kit.name, "--args", "--epochs 20")
        wait_for(lambda: epochs_of(kit) >= 2, up)
        (lost,) = [node for node in swarm.nodes if swarm.has(node, "chief-0")]
        if how == "dies":
            lost.cut_power()
        else:
            swarm.cut_off(lost)
        told = end_of(up)
        assert up.returncode == 0, told
        assert f"the node {lost.name} went down, with chief-0" in str(kit.outcome()["notes"])
        lost.cut_power()
        nothing_is_left(swarm)


@pytest.mark.parametrize("task", ["chief-0", "worker-0"])
def test_a_task_that_no_other_node_takes_ends_the_run_with_its_node(
    tmp_path: Path, task: str
) -> None:
    with nodes.swarm(IMAGES) as swarm:
        alone = {"chief": MANAGER, "worker": MANAGER, task.partition("-")[0]: BESIDE}
        kit = started_with(swarm, tmp_path, **alone, evaluator=MANAGER, ps=MANAGER)
        up = kit.start("up", kit.name, "--args", "--epochs 200")
        wait_for(lambda: epochs_of(kit) >= 2, up)
        swarm.nodes[1].cut_power()
        told = end_of(up)
        outcome = kit.outcome()
        assert up.returncode == 6, told
        assert outcome["blame"].startswith(task.partition("-")[0]), outcome
        assert "its node node-1 is down" in outcome["message"]
        nothing_is_left(swarm)
