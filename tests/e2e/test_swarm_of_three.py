"""On a real swarm of three nodes, each an engine of the tests' own: runs, crashes, a lost node."""

from __future__ import annotations

import json
import signal
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
WITHIN_S = 300
MANAGER, BESIDE, OTHERS = "node.role==manager", "node.hostname==node-1", "node.role!=manager"
DETECT = (
    "--set model.image_size=32 --set train_config.batch_size=8"
    " --set train_config.learning_rate.warmup_steps=0 --set eval_config.num_examples=50"
    " --default-steps 60"
)
IMAGES = {image_tag("cpu"): image_tag("cpu")}


@pytest.fixture(scope="module")
def three() -> Iterator[Swarm]:
    with nodes.swarm(IMAGES) as made:
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


def test_quickstart_runs_on_three_nodes_and_a_worker_crashes(three: Swarm, kit: Kit) -> None:
    change(kit, evaluator=BESIDE)
    up = kit.start("up", kit.name, "--args", "--epochs 25")
    _wait_for(lambda: epochs_of(kit) >= 2, up)
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
    _wait_for(lambda: len([n for n in three.nodes if n.said("ps", "-q")]) == 3, up)
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


def test_a_worker_and_a_ps_whose_node_dies_come_back_on_another(tmp_path: Path) -> None:
    with nodes.swarm(IMAGES) as swarm:
        kit = started_with(
            swarm, tmp_path, chief=MANAGER, evaluator=BESIDE, worker=OTHERS, ps=OTHERS
        )
        up = kit.start("up", kit.name, "--args", "--epochs 30")
        _wait_for(lambda: epochs_of(kit) >= 2, up)
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


def test_a_leader_whose_node_dies_goes_on_on_another(tmp_path: Path) -> None:
    with nodes.swarm(IMAGES) as swarm:
        kit = started_with(
            swarm, tmp_path, chief=OTHERS, evaluator=MANAGER, worker=MANAGER, ps=MANAGER
        )
        up = kit.start("up", kit.name, "--args", "--epochs 20")
        _wait_for(lambda: epochs_of(kit) >= 2, up)
        (lost,) = [node for node in swarm.nodes if swarm.has(node, "chief-0")]
        lost.cut_power()
        told = end_of(up)
        assert up.returncode == 0, told
        assert f"the node {lost.name} went down, with chief-0" in str(kit.outcome()["notes"])
        nothing_is_left(swarm)


@pytest.mark.parametrize("task", ["chief-0", "worker-0"])
def test_a_task_that_no_other_node_takes_ends_the_run_with_its_node(
    tmp_path: Path, task: str
) -> None:
    with nodes.swarm(IMAGES) as swarm:
        alone = {"chief": MANAGER, "worker": MANAGER, task.partition("-")[0]: BESIDE}
        kit = started_with(swarm, tmp_path, **alone, evaluator=MANAGER, ps=MANAGER)
        up = kit.start("up", kit.name, "--args", "--epochs 200")
        _wait_for(lambda: epochs_of(kit) >= 2, up)
        swarm.nodes[1].cut_power()
        told = end_of(up)
        outcome = kit.outcome()
        assert up.returncode == 6, told
        assert outcome["blame"].startswith(task.partition("-")[0]), outcome
        assert "its node node-1 is down" in outcome["message"]
        nothing_is_left(swarm)


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
        _wait_for(lambda: all(swarm.where("worker", n) for n in range(3)), up)
        given = [swarm.variables("worker", n)["DOCKER_RESOURCE_GPU"] for n in range(3)]
        told = end_of(up)
        assert up.returncode == 0, told
        assert sorted(given) == ["GPU-a", "GPU-b", "GPU-c"]
        four = kit.run(*asked, "--workers", "4")
        assert four.returncode == 3 and "the nodes announce 3 GPUs" in four.stderr, four.stderr
        nothing_is_left(swarm)


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


def end_of(up: subprocess.Popen[str]) -> str:
    """What it has said when it has ended; one that takes too long is interrupted."""
    try:
        return up.communicate(timeout=WITHIN_S)[0]
    except subprocess.TimeoutExpired:
        up.send_signal(signal.SIGINT)
        raise AssertionError(f"it has not ended: {up.communicate(timeout=60)[0]}") from None


def told_by(kit: Kit, task: str) -> list[dict[str, Any]]:
    path = kit.root / "runs" / kit.name / "latest" / "output" / "progress" / f"{task}.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def _wait_for(happened: Callable[[], bool], up: subprocess.Popen[str] | None = None) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not happened():
        if time.monotonic() > deadline:
            raise AssertionError(end_of(up) if up else "it has not happened")
        if up is not None and up.poll() is not None:
            raise AssertionError(f"it has ended ({up.returncode}): {up.communicate()[0]}")
        time.sleep(0.3)
