"""GPUs by name: every name of a device is accepted, for pools and for single tasks."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_kit.facts import Driver
from cluster_kit.plan.gpus import Device, devices
from tests.make import cluster, gpus, host, problems
from tests.unit.inventories import gpu, inventories

MIXED = (gpu(0), gpu(1, 0, 3))


def names(device: Device) -> list[str]:
    both = (device.short, device.uuid)
    return [*both, *(f"nvidia.com/gpu={name}" for name in both)]


@given(inventories(least=1).filter(devices), st.data())
def test_every_name_of_a_device_is_accepted(inventory: Any, data: st.DataObject) -> None:
    device = data.draw(st.sampled_from(devices(inventory)))
    for name in names(device):
        made = cluster(host(gpus=inventory), worker=1, gpus=[name])
        assert [(g.name, g.uuid) for g in made.of("worker")[0].gpus_promised] == [
            (f"GPU {device.short} ({device.uuid})", device.uuid)
        ]


@pytest.mark.parametrize(
    ("driver", "written", "reserved"),
    [
        ("nvidia", "0", "0"),
        ("nvidia", "GPU-0000-aaaa", "GPU-0000-aaaa"),
        ("nvidia", "nvidia.com/gpu=0", "0"),
        ("nvidia", "1:3", "MIG-0001-3-aaaa"),
        ("nvidia", "MIG-0001-3-aaaa", "MIG-0001-3-aaaa"),
        ("cdi", "0", "nvidia.com/gpu=0"),
        ("cdi", "GPU-0000-aaaa", "nvidia.com/gpu=0"),
        ("cdi", "nvidia.com/gpu=0", "nvidia.com/gpu=0"),
        ("cdi", "1:3", "nvidia.com/gpu=1:3"),
        ("cdi", "MIG-0001-3-aaaa", "nvidia.com/gpu=1:3"),
    ],
)
def test_the_engine_gets_the_ids_in_its_own_form(
    driver: Driver, written: str, reserved: str
) -> None:
    made = cluster(host(gpus=MIXED, gpu_driver=driver), worker=1, gpus=[written])
    assert made.of("worker")[0].gpus == (reserved,)


@pytest.mark.parametrize("driver", ["nvidia", "cdi"])
def test_auto_assigns_whole_gpus_and_slices(driver: Driver) -> None:
    made = cluster(host(gpus=MIXED, gpu_driver=driver), worker=3, gpus="auto")
    given_out = [task.gpus for task in made.of("worker")]
    assert (
        given_out
        == {
            "nvidia": [("0",), ("MIG-0001-0-aaaa",), ("MIG-0001-3-aaaa",)],
            "cdi": [("nvidia.com/gpu=0",), ("nvidia.com/gpu=1:0",), ("nvidia.com/gpu=1:3",)],
        }[driver]
    )


@pytest.mark.parametrize("name", ["1", "GPU-0001-aaaa", "1:1", "2", "0:0", "", "GPU-", "-1"])
def test_a_sliced_gpu_as_a_whole_and_a_gap_between_slices_do_not_exist(name: str) -> None:
    (problem,) = problems(host(gpus=MIXED), worker=1, gpus=[name])
    assert (problem.key_path, problem.value) == ("gpus", f'"{name}"')
    assert "1:0 (MIG-0001-0-aaaa), 1:3 (MIG-0001-3-aaaa)" in problem.rule


def test_a_gpu_in_mig_mode_without_slices_cannot_be_assigned() -> None:
    inventory = (gpu(0, mig=True), gpu(1))
    assert "no such GPU" in problems(host(gpus=inventory), worker=1, gpus=["0"])[0].rule
    made = cluster(host(gpus=inventory), worker=1, gpus="auto")
    assert made.of("worker")[0].gpus == ("1",)


@pytest.mark.parametrize("role", ["chief", "evaluator"])
@pytest.mark.parametrize("by_task", [True, False])
def test_chief_and_evaluator_get_the_gpus_that_they_name(role: str, by_task: bool) -> None:
    asked: dict[str, Any] = {"gpus": [1]}
    keys = {"task": {f"{role}-0": asked}} if by_task else {"role": {role: asked}}
    made = cluster(host(gpus=gpus(3)), worker=2, evaluator=1, gpus="auto", **keys)
    shown = {task.name: task.gpus for task in made.tasks if task.gpus}
    assert shown == {f"{role}-0": ("1",), "worker-0": ("0",), "worker-1": ("2",)}


def test_a_tasks_key_overrides_its_roles() -> None:
    keys = {"role": {"chief": {"gpus": ["1"]}}, "task": {"chief-0": {"gpus": []}}}
    assert not any(task.gpus for task in cluster(host(gpus=gpus(2)), **keys).tasks)


def test_one_worker_may_name_its_gpus_and_the_others_get_the_rest() -> None:
    keys = {"task": {"worker-1": {"gpus": ["0"]}}}
    made = cluster(host(gpus=gpus(3)), worker=3, gpus="auto", **keys)
    assert [task.gpus for task in made.of("worker")] == [("1",), ("0",), ("2",)]


def test_all_workers_may_name_their_gpus_without_a_top_level_key() -> None:
    task = {"worker-0": {"gpus": ["1"]}, "worker-1": {"gpus": ["0"]}}
    made = cluster(host(gpus=gpus(2)), worker=2, task=task)
    assert [t.gpus for t in made.of("worker")] == [("1",), ("0",)]
    assert made.variant == "gpu"


def test_workers_with_different_numbers_are_refused() -> None:
    task = {"worker-1": {"gpus": ["0", "1"]}}
    (problem,) = problems(host(gpus=gpus(4)), worker=2, gpus="auto", task=task)
    assert problem.key_path == "task.worker-1.gpus"
    assert "worker-0: 1, worker-1: 2" in problem.rule
    (problem,) = problems(host(gpus=gpus(4)), worker=2, task=task)
    assert "worker-0: 0, worker-1: 2" in problem.rule


@pytest.mark.parametrize(
    ("keys", "key_path"),
    [
        ({"role": {"ps": {"gpus": ["0"]}}}, "role.ps.gpus"),
        ({"task": {"ps-0": {"gpus": ["0"]}}}, "task.ps-0.gpus"),
    ],
)
def test_a_ps_never_gets_one(keys: dict[str, Any], key_path: str) -> None:
    (problem,) = problems(host(gpus=gpus(2)), **keys)
    assert problem.key_path == key_path
    assert "never gets a GPU" in problem.rule


def test_gpus_of_all_workers_in_a_role_table_get_a_hint_to_the_top_level_key() -> None:
    (problem,) = problems(host(gpus=gpus(2)), role={"worker": {"gpus": ["0", "1"]}})
    assert problem.key_path == "role.worker.gpus"
    assert "`gpus = [...]`" in problem.hint_text()


@pytest.mark.parametrize(
    ("keys", "key_path"),
    [
        ({"role": {"chief": {"gpus": ["9"]}}}, "role.chief.gpus"),
        ({"task": {"chief-0": {"gpus": ["9"]}}}, "task.chief-0.gpus"),
        ({"role": {"chief": {"gpus": ["0", "0"]}}}, "role.chief.gpus"),
        ({"role": {"chief": {"gpus": ["0"]}}, "gpus": ["0", "1"]}, "role.chief.gpus"),
    ],
)
def test_a_problem_is_reported_at_its_key(keys: dict[str, Any], key_path: str) -> None:
    (problem,) = problems(host(gpus=gpus(2)), **keys)
    assert problem.key_path == key_path


def test_one_device_under_two_names_for_two_tasks_is_refused() -> None:
    keys = {"role": {"chief": {"gpus": ["1:0"]}}, "gpus": ["MIG-0001-0-aaaa"]}
    (problem,) = problems(host(gpus=MIXED), worker=1, **keys)
    assert (
        "one GPU for several tasks: 1:0 (MIG-0001-0-aaaa) for chief-0 and worker-0" in problem.rule
    )
    assert "share_gpus" in problem.hint_text()


def test_an_unknown_gpu_is_one_problem_however_many_are_needed() -> None:
    """ "There is none" and "there is one" would contradict each other."""
    (problem,) = problems(host(), worker=2, gpus=["7"])
    assert problem.rule == "this host has no such GPU; it has: none"
    (few,) = problems(host(gpus=gpus(2)), worker=2, gpus=["1"])
    assert few.rule == "2 workers with 1 GPU(s) each need 2, there are 1"
