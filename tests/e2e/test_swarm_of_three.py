"""A real swarm of three nodes, each a separate engine: runs, crashes, a lost node."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cluster_kit.image.kit_image import image_tag
from cluster_kit.plan.addresses import pick_subnet
from tests.e2e import nodes
from tests.e2e.evidence import log
from tests.e2e.nodes import Swarm
from tests.e2e.on_swarm import (
    BESIDE,
    HOLDS,
    IMAGES,
    MANAGER,
    change,
    end_of,
    epochs_of,
    let_hold,
    nothing_is_left,
    placed,
    starts_of,
    subnet_of,
    told_by,
    wait_for,
    with_one_subnet,
)
from tests.e2e.running import running
from tests.kit import Kit, new_kit

pytestmark = [
    pytest.mark.xdist_group("swarm-of-three"),
    pytest.mark.skipif(bool(nodes.why_not()), reason=nodes.why_not() or "-"),
]


@pytest.fixture(scope="module")
def made() -> Iterator[Swarm]:
    with nodes.swarm(IMAGES) as swarm:
        yield swarm


@pytest.fixture
def three(made: Swarm) -> Swarm:
    made.switch_on()
    return made


@pytest.fixture
def kit(three: Swarm, tmp_path: Path) -> Kit:
    return new_kit(tmp_path / "ws", "three", DOCKER_HOST=three.manager.host)


def after_a_crash_and_a_dead_node(
    three: Swarm, kit: Kit, up: subprocess.Popen[str], role: str, *, epochs: int
) -> tuple[dict[str, Any], dict[str, int]]:
    """Crash the role's first task on the second node, and cut the third node's power when the task
    trains again; returns the outcome of the run, which succeeds, and each task's restarts."""
    _, beside, dies = three.nodes
    beside.crash(beside.task(role, 0))
    wait_for(lambda: starts_of(kit, f"{role}-0") == 2 and epochs_of(kit) >= epochs, up)
    let_hold(three, beside)
    dies.cut_power()
    told = end_of(up)
    assert up.returncode == 0, told
    outcome = kit.outcome()
    return outcome, {task["name"]: task["restarts"] for task in outcome["tasks"]}


def test_the_quickstart_continues_after_a_crash_and_a_dead_node(three: Swarm, kit: Kit) -> None:
    manager, beside, dies = three.nodes
    let_hold(three, dies)
    roles = {"chief": MANAGER, "ps": MANAGER, "worker": BESIDE, "evaluator": BESIDE}
    change(kit, **roles, worker_1=HOLDS, ps_1=HOLDS)
    with running(kit, "up", kit.name, "--args", "--epochs 12") as up:
        wait_for(lambda: any(one["event"] == "step" for one in told_by(kit, "chief-0")), up)
        assert placed(three, kit) == {
            **dict.fromkeys(("chief-0", "ps-0"), manager.name),
            **dict.fromkeys(("worker-0", "evaluator-0"), beside.name),
            **dict.fromkeys(("worker-1", "ps-1"), dies.name),
        }
        outcome, restarts = after_a_crash_and_a_dead_node(three, kit, up, "worker", epochs=2)
    none = dict.fromkeys(restarts, 0)
    assert outcome["success"] and restarts == {**none, "worker-0": 1, "worker-1": 1, "ps-1": 1}
    (note,) = [note for note in outcome["notes"] if "went down" in note]
    assert dies.name in note and "worker-1" in note and "ps-1" in note
    assert all(task["ip"] for task in outcome["tasks"])
    resumed = [one["time"] for one in told_by(kit, "chief-0") if one["event"] == "start"]
    assert len(resumed) == 2, "the chief's program continues from its last checkpoint"
    later = [one for one in told_by(kit, "chief-0") if "epoch" in one and one["time"] > resumed[1]]
    assert later[0]["epoch"] > 1
    assert log(kit, "worker-0").count("TensorFlow server ready") == 2
    nothing_is_left(three)
    three.switch_on()
    nothing_is_left(three)


def is_a_line(metrics: dict[str, Any]) -> bool:
    """Returns whether both workers made steps, and the line was found."""
    steps = [metrics["steps_of_worker-0"], metrics["steps_of_worker-1"]]
    return min(steps) > 0 and sum(steps) == metrics["updates"] and metrics["w_error"] <= 0.02


@dataclass(frozen=True)
class System:
    """The arguments for a short run of a system, the node of each task, and the expected
    metrics."""

    arguments: str
    on: dict[str, str]
    right: Callable[[dict[str, Any]], bool]
    options: tuple[str, ...] = ()

    @property
    def nodes(self) -> dict[str, str]:
        return {name.replace("-", "_"): f"node.hostname=={n}" for name, n in self.on.items()}


SYSTEMS = {
    "linear-regression": System(
        "--steps 800 --learning-rate 0.02 --pause-ms 5",
        {"worker-0": "node-0", "worker-1": "node-1", "ps-0": "node-2"},
        is_a_line,
    ),
    "all-reduce": System(
        "--epochs 2 --steps-per-epoch 30 --batch-size 16 --learning-rates 0:2e-3",
        {"worker-0": "node-2", "worker-1": "node-1"},
        lambda metrics: (metrics["updates"], metrics["staleness_max"]) == (60, 0),
        ("--set", "evaluator=0"),
    ),
    "detection-sync": System(
        "--set model.image_size=32 --set train_config.batch_size=8"
        " --set train_config.learning_rate.warmup_steps=0 --set eval_config.num_examples=50"
        " --default-steps 20",
        {"chief-0": "node-0", "worker-0": "node-1", "ps-0": "node-2"},
        lambda metrics: 20 <= metrics["updates"] <= 22,
        ("--workers", "1", "--set", "evaluator=0"),
    ),
}


def all_seen(
    swarm: Swarm, kits: dict[str, Kit], ups: dict[str, subprocess.Popen[str]], seen: set[str]
) -> bool:
    """Returns whether each system has run on its nodes: one may end before another one begins."""
    for name in SYSTEMS.keys() - seen:
        if placed(swarm, kits[name]) == SYSTEMS[name].on:
            seen.add(name)
        elif ups[name].poll() is not None:
            raise AssertionError(f"{name} has ended: {ups[name].communicate()[0]}")
    return seen == SYSTEMS.keys()


@pytest.mark.more
def test_three_other_systems_train_at_the_same_time(three: Swarm, tmp_path: Path) -> None:
    with ExitStack() as started:
        kits, ups, first = {}, {}, None
        for name, system in SYSTEMS.items():
            kits[name] = kit = with_one_subnet(
                new_kit(tmp_path / name, name[:6], DOCKER_HOST=three.manager.host), first
            )
            first = first or pick_subnet(kit.name, 24, ())
            change(kit, name, **system.nodes)
            command = ("up", kit.name, *system.options, f"--args={system.arguments}")
            ups[name] = started.enter_context(running(kit, *command))
        wait_for(partial(all_seen, three, kits, ups, set()))
        for name, up in ups.items():
            told = end_of(up)
            assert up.returncode == 0, told
            outcome = kits[name].outcome()
            assert outcome["success"], outcome
            assert SYSTEMS[name].right(outcome["metrics"]), outcome["metrics"]
    assert len({subnet_of(kit) for kit in kits.values()}) == len(kits)
    nothing_is_left(three)


def test_down_leaves_nothing_on_any_node(three: Swarm, kit: Kit) -> None:
    few = ("--workers", "1", "--ps", "1", "--set", "evaluator=0", "--args", "--epochs 500")
    up = kit.run("up", "quickstart", "--engine", "swarm", "--name", kit.name, *few, "--detach")
    assert up.returncode == 0, up.stderr
    assert sorted(placed(three, kit).values()) == ["node-0", "node-1", "node-2"]
    seen = json.loads(kit.run("status", kit.name, "--json").stdout)
    assert len(seen[kit.name]) == 3
    assert json.loads(kit.run("status", "--engine", "compose", "--json").stdout) == {}
    assert kit.run("down", kit.name).returncode == 0
    assert kit.outcome()["reason"] == "stopped"
    nothing_is_left(three)


@pytest.mark.more
def test_data_workers_continue_on_other_nodes_with_their_dispatchers_journal(
    three: Swarm, kit: Kit
) -> None:
    dies = three.nodes[-1]
    let_hold(three, dies)
    roles = dict.fromkeys(("chief", "ps"), MANAGER) | dict.fromkeys(("worker", "evaluator"), BESIDE)
    change(kit, "smoke", **roles, data_worker=BESIDE, data_worker_1=HOLDS, data_dispatcher=HOLDS)
    longer = ("--data-workers", "2", "--args", "--epochs 14 --steps-per-epoch 100")
    with running(kit, "up", kit.name, *longer) as up:
        wait_for(lambda: epochs_of(kit) >= 1, up)
        assert placed(three, kit)["data_dispatcher-0"] == dies.name
        outcome, restarts = after_a_crash_and_a_dead_node(three, kit, up, "data_worker", epochs=3)
    lost = ("data_dispatcher-0", "data_worker-0", "data_worker-1")
    assert restarts == {**dict.fromkeys(restarts, 0), **dict.fromkeys(lost, 1)}
    assert any("went down" in note and lost[0] in note for note in outcome["notes"])
    assert {task["exit_code"] for task in outcome["tasks"]} == {0}
    assert len([one for one in told_by(kit, "chief-0") if one["event"] == "start"]) == 1
    assert outcome["metrics"]["validation_accuracy"] > 0.8
    nothing_is_left(three)


@pytest.mark.slow
def test_gpus_are_assigned_and_promised_by_number(tmp_path: Path) -> None:
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
        programs = kit.run("up", "all-reduce", *asked[2:8], "--workers", "3")
        assert programs.returncode == 3, programs.stderr
        told = kit.outcome()["message"]
        assert re.search(r"promised GPU 1 of 1 of its node \(GPU-[abc]\), sees none", told), told
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
