"""Two clusters on one engine: every container sees only its own GPU."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.gpu.clusters import device_nodes, environment, left, requests, standing, write
from tests.gpu.conftest import MakeKit, inventory
from tests.gpu.second_engine import GPUS, SecondEngine
from tests.kit import Kit

WORKERS = ("worker-0", "worker-1")
OTHERS = ("chief-0", "ps-0", "evaluator-0")


@dataclass(frozen=True)
class Scene:
    """Two clusters that are up on one engine with four GPUs, and a third that is not."""

    engine: SecondEngine
    first: Kit
    second: Kit
    third: Kit

    @property
    def driver(self) -> str:
        return "cdi" if "cdi" in self.engine.namespace else "nvidia"

    def id(self, index: str) -> str:
        return f"nvidia.com/gpu={index}" if self.driver == "cdi" else index

    def sees(self, container: str) -> list[str]:
        """Returns the indexes of the GPUs that a running container really got."""
        found = environment(self.engine, container)
        if self.driver == "cdi":
            nodes = device_nodes(self.engine, container)
            assert [f"nvidia{found['CDI_GAVE']}"] == nodes if nodes else "CDI_GAVE" not in found
            return [node.removeprefix("nvidia") for node in nodes]
        return [name for name in found.get("NVIDIA_VISIBLE_DEVICES", "").split(",") if name]


@pytest.fixture(scope="module")
def scene(engine: SecondEngine, make_kit: MakeKit) -> Iterator[Scene]:
    first, second, third = (make_kit(engine, inventory(len(GPUS))) for _ in range(3))
    with (
        standing(first, engine, chief=1, worker=2, ps=1, evaluator=1),
        standing(second, engine, chief=0, worker=2, ps=0),
    ):
        yield Scene(engine, first, second, third)
    for kit in (first, second):
        assert kit.outcome()["success"] is True
        assert left(kit, engine) == []


def test_each_worker_sees_only_its_own_gpu(scene: Scene) -> None:
    seen = [scene.sees(f"{scene.first.name}-{worker}") for worker in WORKERS]
    assert seen == [["0"], ["1"]]


def test_chief_ps_and_evaluator_see_none(scene: Scene) -> None:
    for task in OTHERS:
        container = f"{scene.first.name}-{task}"
        assert scene.sees(container) == []
        assert requests(scene.engine, container) == []
        assert environment(scene.engine, container)["CUDA_VISIBLE_DEVICES"] == "-1"


def test_the_engine_got_explicit_ids(scene: Scene) -> None:
    asked = [requests(scene.engine, f"{scene.first.name}-{worker}") for worker in WORKERS]
    assert asked == [[(scene.driver, [scene.id("0")])], [(scene.driver, [scene.id("1")])]]


def test_a_second_cluster_gets_the_other_gpus(scene: Scene) -> None:
    seen = [scene.sees(f"{scene.second.name}-{worker}") for worker in WORKERS]
    assert seen == [["2"], ["3"]]


def test_a_third_cluster_is_refused_and_the_users_of_the_gpus_named(scene: Scene) -> None:
    done = scene.third.run("up", write(scene.third, chief=0, worker=1, ps=0))
    assert done.returncode == 2, done.stderr
    output = " ".join(done.stderr.split())
    assert f"0 is {scene.first.name}'s, 1 is {scene.first.name}'s" in output
    assert f"2 is {scene.second.name}'s, 3 is {scene.second.name}'s" in output
    assert "share_gpus = true" in output and 'gpus = "none"' in output
    assert left(scene.third, scene.engine) == []


def test_a_gpu_of_another_cluster_is_refused_with_its_name(scene: Scene) -> None:
    done = scene.third.run("up", write(scene.third, chief=0, worker=1, ps=0, gpus=["GPU-2222"]))
    assert done.returncode == 2, done.stderr
    assert f"the cluster {scene.second.name} has GPU 2 (GPU-2222)" in " ".join(done.stderr.split())


def test_gpus_and_status_show_which_cluster_has_which_gpu(scene: Scene) -> None:
    found = json.loads(scene.third.run("gpus", "--json").stdout)
    assert (found["driver"], found["refusal"]) == (scene.driver, None)
    holders = {gpu["uuid"]: gpu["clusters"] for gpu in found["gpus"]}
    first, second = [scene.first.name], [scene.second.name]
    assert list(holders.values()) == [first, first, second, second]
    tasks = json.loads(scene.first.run("status", scene.first.name, "--json").stdout)
    shown = {task["name"]: task["gpus"] for task in tasks[scene.first.name] if task["gpus"]}
    assert shown == {"worker-0": [scene.id("0")], "worker-1": [scene.id("1")]}
