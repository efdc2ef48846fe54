"""Sharing one GPU; ids that the kit or the engine does not know."""

from __future__ import annotations

from tests.gpu.clusters import environment, left, requests, standing, write
from tests.gpu.conftest import MakeKit, inventory
from tests.gpu.second_engine import GPUS, SecondEngine

ALONE = {"chief": 0, "worker": 2, "ps": 0}


def test_two_workers_share_one_gpu_each_with_a_part_of_its_memory(
    nvidia_engine: SecondEngine, make_kit: MakeKit
) -> None:
    kit = make_kit(nvidia_engine, inventory(len(GPUS)))
    half = str(int(16 * 1024 * 0.9) // 2)
    with standing(kit, nvidia_engine, **ALONE, gpus=["GPU-3333"], share_gpus=True) as containers:
        assert len(containers) == 2
        for container in containers:
            found = environment(nvidia_engine, container)
            assert found["NVIDIA_VISIBLE_DEVICES"] == "GPU-3333"
            assert found["CLUSTER_KIT_GPU_MEMORY_MB"] == half
            assert requests(nvidia_engine, container) == [("nvidia", ["GPU-3333"])]
    assert {tuple(task["gpu"]) for task in kit.outcome()["tasks"]} == {("GPU-3333",)}
    assert left(kit, nvidia_engine) == []


def test_an_unknown_gpu_is_refused_before_anything_starts(
    nvidia_engine: SecondEngine, make_kit: MakeKit
) -> None:
    kit = make_kit(nvidia_engine, inventory(2))
    done = kit.run("up", write(kit, **ALONE, gpus=["0", "7"]))
    assert done.returncode == 2, done.stderr
    output = " ".join(done.stderr.split())
    assert 'gpus = "7": this host has no such GPU' in output
    assert "0 (GPU-0000), 1 (GPU-1111)" in output
    assert left(kit, nvidia_engine) == []
    assert not (kit.root / "runs").exists()


def test_a_gpu_that_the_engine_refuses_ends_the_start_with_its_message(
    engine: SecondEngine, make_kit: MakeKit
) -> None:
    """The inventory has one GPU more than the engine knows, so only the start can show it."""
    kit = make_kit(engine, inventory(len(GPUS) + 1))
    done = kit.run("up", write(kit, **ALONE, gpus=["0", "4"]))
    assert done.returncode == 4, done.stderr
    words = ("stub: unknown device id: 4", "unresolvable CDI devices nvidia.com/gpu=4")
    assert any(word in done.stderr for word in words), done.stderr
    assert left(kit, engine) == []
