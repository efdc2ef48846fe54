"""On a real swarm of three nodes, each an engine of the tests' own: runs, crashes, a lost node."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster_kit.image.build import image_tag
from tests.e2e import nodes
from tests.e2e.nodes import Swarm
from tests.e2e.on_swarm import (
    BESIDE,
    IMAGES,
    change,
    end_of,
    epochs_of,
    nothing_is_left,
    wait_for,
)
from tests.kit import Kit, new_kit

pytestmark = [
    pytest.mark.slow,  # three engines, and clusters that wait for a swarm's own times
    pytest.mark.xdist_group("swarm-of-three"),
    pytest.mark.skipif(bool(nodes.why_not()), reason=nodes.why_not() or "-"),
]
DETECT = (
    "--set model.image_size=32 --set train_config.batch_size=8"
    " --set train_config.learning_rate.warmup_steps=0 --set eval_config.num_examples=50"
    " --default-steps 60"
)


@pytest.fixture(scope="module")
def three() -> Iterator[Swarm]:
    with nodes.swarm(IMAGES) as made:
        yield made


@pytest.fixture
def kit(three: Swarm, tmp_path: Path) -> Kit:
    return new_kit(tmp_path / "ws", "three", DOCKER_HOST=three.manager.host)


def test_quickstart_runs_on_three_nodes_and_a_worker_crashes(three: Swarm, kit: Kit) -> None:
    change(kit, evaluator=BESIDE)
    up = kit.start("up", kit.name, "--args", "--epochs 25")
    wait_for(lambda: epochs_of(kit) >= 2, up)
    on = {node.name: len(node.said("ps", "-q").split()) for node in three.nodes}
    assert sum(on.values()) == 6 and min(on.values()) >= 1, on
    assert three.has(three.nodes[1], "evaluator-0")
    node = three.where("worker", 1)
    assert node is not None
    node.crash(node.task("worker", 1))
    told = end_of(up)
    assert up.returncode == 0, told
    outcome = kit.outcome()
    restarts = {task["name"]: task["restarts"] for task in outcome["tasks"]}
    assert outcome["success"] and restarts == {**dict.fromkeys(restarts, 0), "worker-1": 1}
    nothing_is_left(three)


@pytest.mark.parametrize(
    ("manifest", "more"),
    [
        ("linear-regression", ()),
        ("all-reduce", ("--args", "--epochs 2")),
        ("detection-sync", ("--workers", "1", "--args", DETECT)),
    ],
)
def test_other_systems_run_on_three_nodes(
    three: Swarm, kit: Kit, manifest: str, more: tuple[str, ...]
) -> None:
    up = kit.start("up", manifest, "--engine", "swarm", "--name", kit.name, *more)
    wait_for(lambda: len([n for n in three.nodes if n.said("ps", "-q")]) == 3, up)
    told = end_of(up)
    assert up.returncode == 0, told
    assert kit.outcome()["success"]
    nothing_is_left(three)


def test_down_leaves_nothing_on_any_node(three: Swarm, kit: Kit) -> None:
    up = kit.run("up", "quickstart", "--engine", "swarm", "--name", kit.name, "--detach")
    assert up.returncode == 0, up.stderr
    assert all(node.said("ps", "-q") for node in three.nodes)
    assert kit.run("down", kit.name).returncode == 0
    nothing_is_left(three)


def test_gpus_are_handed_out_by_their_number_and_promised(tmp_path: Path) -> None:
    images = {**IMAGES, image_tag("gpu"): image_tag("cpu")}
    gpus = {1: ["GPU=GPU-a", "GPU=GPU-b"], 2: ["GPU=GPU-c"]}
    with nodes.swarm(images, gpus) as swarm:
        kit = new_kit(tmp_path / "ws", "gpus", DOCKER_HOST=swarm.manager.host)
        asked = ["up", "quickstart", "--name", kit.name, "--engine", "swarm", "--gpus", "require",
                 "--ps", "1", "--args", "--epochs 4"]  # fmt: skip
        broken = kit.run(*asked, "--workers", "3")
        assert broken.returncode == 3, broken.stderr
        assert "was promised GPU 1 of 1 of its node, sees none" in kit.outcome()["message"]
        nothing_is_left(swarm)
        up = kit.start(*asked, "--workers", "3", "--set", "gpu_check=false")
        wait_for(lambda: all(swarm.where("worker", n) for n in range(3)), up)
        given = [swarm.variables("worker", n)["DOCKER_RESOURCE_GPU"] for n in range(3)]
        told = end_of(up)
        assert up.returncode == 0, told
        assert sorted(given) == ["GPU-a", "GPU-b", "GPU-c"]
        four = kit.run(*asked, "--workers", "4")
        assert four.returncode == 3 and "the nodes announce 3 GPUs" in four.stderr, four.stderr
        nothing_is_left(swarm)
