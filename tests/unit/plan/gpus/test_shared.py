"""Several tasks on one GPU, if that is requested; GPUs of other clusters, if it is not."""

from __future__ import annotations

import pytest

from cluster_kit.facts import HostFacts
from tests.make import GIB, cluster, gpus, host, problems
from tests.unit.inventories import gpu


def held(*taken: tuple[str, str], count: int = 4) -> HostFacts:
    return host(gpus=gpus(count), gpus_taken=taken)


def test_more_workers_than_gpus_are_refused_with_three_fixes() -> None:
    (problem,) = problems(host(gpus=gpus(2)), worker=3, gpus="auto")
    assert "3 workers with 1 GPU(s) each need 3, there are 2" in problem.rule
    for way in ("`worker = 2`", "`share_gpus = true`", '`gpus = "none"`'):
        assert way in problem.hint_text()


def test_sharing_distributes_workers_in_turn_and_divides_the_memory() -> None:
    made = cluster(host(gpus=gpus(2)), worker=5, gpus="auto", share_gpus=True)
    assert [task.gpus for task in made.of("worker")] == [("0",), ("1",), ("0",), ("1",), ("0",)]
    whole = int(80 * GIB * 0.9)
    limits = [task.gpu_memory_mib for task in made.of("worker")]
    assert limits == [whole // n // 2**20 for n in (3, 2, 3, 2, 3)]


def test_sharing_mixed_gpus_uses_the_smallest_memory_of_a_task() -> None:
    inventory = (gpu(0, memory=80 * GIB), gpu(1, memory=16 * GIB))
    made = cluster(host(gpus=inventory), worker=2, gpus="auto", gpus_per_worker=2, share_gpus=True)
    assert [t.gpu_memory_mib for t in made.of("worker")] == [int(16 * GIB * 0.9) // 2 // 2**20] * 2


def test_slices_are_shared_like_gpus() -> None:
    made = cluster(host(gpus=(gpu(0, 2, 5),)), worker=4, gpus="auto", share_gpus=True)
    shown = [task.gpus_promised[0].name.split()[1] for task in made.of("worker")]
    assert shown == ["0:2", "0:5", "0:2", "0:5"]


def test_the_chief_may_share_a_workers_gpu() -> None:
    keys = {"role": {"chief": {"gpus": ["0"]}}, "share_gpus": True}
    made = cluster(host(gpus=gpus(1)), worker=1, gpus="auto", **keys)
    assert {t.name: t.gpus for t in made.tasks if t.gpus} == {
        "chief-0": ("0",),
        "worker-0": ("0",),
    }
    assert {t.gpu_memory_mib for t in made.tasks if t.gpus} == {int(80 * GIB * 0.9) // 2 // 2**20}


def test_without_sharing_there_is_a_limit_only_if_it_is_written() -> None:
    facts = host(gpus=gpus(2))
    assert {t.gpu_memory_mib for t in cluster(facts, gpus="auto").tasks} == {None}
    made = cluster(facts, gpus="auto", gpu_memory="4g")
    assert [t.gpu_memory_mib for t in made.of("worker")] == [4096, 4096]
    assert {t.gpu_memory_mib for t in made.of("ps")} == {None}


@pytest.mark.parametrize(("workers", "asked", "most"), [(1, "81g", 81920), (3, "30g", 27306)])
def test_more_memory_than_a_gpu_has_is_refused_with_the_maximum(
    workers: int, asked: str, most: int
) -> None:
    (problem,) = problems(
        host(gpus=gpus(1)), worker=workers, gpus="auto", share_gpus=True, gpu_memory=asked
    )
    assert problem.key_path == "gpu_memory"
    assert "which has 81920 MiB" in problem.rule
    assert problem.hint_text() == f"at most {most} MiB each"


def test_auto_does_not_use_gpus_of_other_clusters() -> None:
    made = cluster(held(("0", "other"), ("2", "another")), worker=2, gpus="auto")
    assert [task.gpus for task in made.of("worker")] == [("1",), ("3",)]


@pytest.mark.parametrize("device", ["1", "nvidia.com/gpu=1", gpus(2)[1].uuid])
def test_a_gpu_in_use_is_recognized_by_any_of_its_names(device: str) -> None:
    made = cluster(held((device, "other"), count=2), worker=1, gpus="auto")
    assert made.of("worker")[0].gpus == ("0",)
    (problem,) = problems(held((device, "other"), count=2), worker=1, gpus=["1"])
    assert "the cluster other has GPU 1" in problem.rule
    assert "`cluster-kit down other`" in problem.hint_text()


def test_gpus_in_use_are_refused_to_single_tasks_too() -> None:
    (problem,) = problems(held(("1", "other")), role={"chief": {"gpus": ["1"]}})
    assert problem.key_path == "role.chief.gpus"
    assert "the cluster other has GPU 1" in problem.rule


def test_the_clusters_own_gpus_are_free_for_it() -> None:
    made = cluster(held(("0", "demo"), ("1", "demo"), count=2), worker=2, gpus="auto")
    assert [task.gpus for task in made.of("worker")] == [("0",), ("1",)]
    assert cluster(held(("1", "demo")), worker=1, gpus=["1"]).of("worker")[0].gpus == ("1",)


def test_a_reservation_of_a_removed_device_blocks_no_cluster() -> None:
    assert cluster(held(("9", "other"), count=2), worker=2, gpus="auto").variant == "gpu"


def test_if_all_gpus_are_in_use_the_error_names_users_and_fixes() -> None:
    facts = held(("1", "two"), ("0", "one"), count=2)
    (problem,) = problems(facts, worker=2, gpus="auto")
    assert "there are 0 free; 0 is one's, 1 is two's" in problem.rule
    assert "share_gpus = true" in problem.hint_text() and '`gpus = "none"`' in problem.hint_text()
    assert "worker = 0" not in problem.hint_text()


def test_sharing_uses_free_gpus_first_and_then_those_of_other_clusters() -> None:
    facts = held(("0", "other"), count=2)
    made = cluster(facts, worker=2, gpus="auto", share_gpus=True)
    assert [task.gpus for task in made.of("worker")] == [("1",), ("0",)]
    assert cluster(facts, worker=1, gpus=["0"], share_gpus=True).of("worker")[0].gpus == ("0",)
