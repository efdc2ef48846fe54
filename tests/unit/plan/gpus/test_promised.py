"""The environment by which tasks check their GPUs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cluster_kit.platforms.compose.compose_file import render
from tests.make import GIB, cluster, gpus, host, parse_compose, promised


def environments(**keys: Any) -> dict[str, dict[str, str]]:
    count = keys.pop("there", 4)
    made = cluster(host(gpus=gpus(count)), evaluator=1, **keys)
    services = parse_compose(render(made))["services"]
    return {name: service["environment"] for name, service in services.items()}


def test_each_worker_gets_its_gpus_by_name_bus_id_and_uuid() -> None:
    found = environments(worker=2, gpus="auto", gpus_per_worker=2)
    told = [promised(gpu) for gpu in gpus(4)]
    assert json.loads(found["worker-0"]["CLUSTER_KIT_GPUS"]) == told[:2]
    assert json.loads(found["worker-1"]["CLUSTER_KIT_GPUS"]) == told[2:]
    for name in ("chief-0", "ps-0", "evaluator-0"):
        assert "CLUSTER_KIT_GPUS" not in found[name]


def test_only_the_leader_gets_the_promises_of_servers() -> None:
    found = environments(worker=2, gpus="auto")
    promises = json.loads(found["chief-0"]["CLUSTER_KIT_PROMISES"])
    assert promises == {f"worker-{gpu.index}": [promised(gpu)] for gpu in gpus(2)}
    assert [name for name, env in found.items() if "CLUSTER_KIT_PROMISES" in env] == ["chief-0"]


def test_workers_that_run_the_program_check_themselves() -> None:
    found = environments(chief=0, ps=0, worker=2, gpus="auto")
    assert not any("CLUSTER_KIT_PROMISES" in env for env in found.values())
    assert all("CLUSTER_KIT_GPUS" in found[f"worker-{index}"] for index in (0, 1))


def test_without_gpus_nothing_is_promised() -> None:
    for env in environments(there=0, gpus="auto").values():
        assert not {"CLUSTER_KIT_PROMISES", "CLUSTER_KIT_GPUS", "NCCL_SOCKET_IFNAME"} & env.keys()
        assert env["CUDA_VISIBLE_DEVICES"] == "-1"


@pytest.mark.parametrize(("written", "told"), [(True, "on"), (False, "off")])
def test_all_tasks_get_the_switch_for_the_check(written: bool, told: str) -> None:
    found = environments(gpu_check=written, gpus="auto")
    assert {env["CLUSTER_KIT_GPU_CHECK"] for env in found.values()} == {told}


def test_memory_limits_reach_the_tasks_that_have_a_gpu() -> None:
    found = environments(there=1, worker=2, gpus="auto", share_gpus=True)
    limits = {name: env.get("CLUSTER_KIT_GPU_MEMORY_MB") for name, env in found.items()}
    each = str(int(80 * GIB * 0.9) // 2 // 2**20)
    assert {name: limit for name, limit in limits.items() if limit} == {
        "worker-0": each,
        "worker-1": each,
    }
    assert "CLUSTER_KIT_GPU_MEMORY_MB" not in environments(gpus="auto")["worker-0"]


def test_only_workers_without_gpus_simulate_some() -> None:
    asked = {"worker": 2, "simulate_gpus": 3}
    without = environments(there=0, gpus="auto", **asked)
    told = {name: env.get("CLUSTER_KIT_SIMULATE_GPUS") for name, env in without.items()}
    assert {name: n for name, n in told.items() if n} == {"worker-0": "3", "worker-1": "3"}
    reducing = environments(there=0, chief=1, ps=0, style="all-tasks", **asked)
    assert reducing["chief-0"]["CLUSTER_KIT_SIMULATE_GPUS"] == "3"
    for env in environments(gpus="auto", **asked).values():
        assert "CLUSTER_KIT_SIMULATE_GPUS" not in env
    for env in environments(there=0, worker=2).values():
        assert "CLUSTER_KIT_SIMULATE_GPUS" not in env


def test_tasks_with_gpus_have_shared_memory_and_one_interface_for_nccl() -> None:
    made = cluster(host(gpus=gpus(2)), gpus="auto")
    services = parse_compose(render(made))["services"]
    assert services["worker-0"]["shm_size"] == "1gb"
    assert services["worker-0"]["environment"]["NCCL_SOCKET_IFNAME"] == "eth0"
    assert "shm_size" not in services["ps-0"]
