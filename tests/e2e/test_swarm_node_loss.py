"""A real swarm of three loses a node with the leader, or with a task that no other node accepts."""

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
    wait_for,
)

pytestmark = [
    pytest.mark.slow,  # A swarm notices after ten seconds, and each test has a separate swarm.
    pytest.mark.skipif(bool(nodes.why_not()), reason=nodes.why_not() or "-"),
]


@pytest.mark.parametrize("how", ["dies", "cut off"])
def test_a_leader_whose_node_is_lost_continues_on_another(tmp_path: Path, how: str) -> None:
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
def test_a_task_that_no_other_node_accepts_ends_the_run_and_its_node_is_named(
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
