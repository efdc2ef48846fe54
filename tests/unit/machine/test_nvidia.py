"""Queries of NVIDIA's library, through a stand-in for it."""

from __future__ import annotations

import importlib.util
import json
import sys
from types import ModuleType
from typing import Any

import pytest

from cluster_kit.facts import Slice
from cluster_kit.machine import host_facts
from cluster_kit.plan.gpus import devices
from tests.make import GIB, ROOT

A100 = {"uuid": "GPU-a", "name": "NVIDIA A100", "memory": 40 * GIB}
T4 = {"uuid": "GPU-t", "name": "Tesla T4", "memory": 15 * GIB}
SLICES = {
    "1": {"uuid": "MIG-1", "name": "1g.5gb", "memory": 5 * GIB},
    "4": {"uuid": "MIG-4", "name": "3g.20gb", "memory": 20 * GIB},
}


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    file = ROOT / "tests" / "gpu" / "fake_nvml" / "pynvml.py"
    found = importlib.util.spec_from_file_location("fake_pynvml", file)
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    monkeypatch.setitem(sys.modules, "fake_pynvml", module)
    found.loader.exec_module(module)
    monkeypatch.setattr(host_facts, "pynvml", module)
    monkeypatch.delenv("FAKE_NVML", raising=False)
    return module


@pytest.fixture
def there(fake: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Returns a function that adds GPUs to the host."""
    return lambda *gpus: monkeypatch.setenv("FAKE_NVML", json.dumps(gpus))


def test_without_a_driver_there_is_no_gpu_and_a_reason(fake: ModuleType) -> None:
    assert host_facts.gpu_inventory() == ()
    assert host_facts.driver_problem() == "NVML Shared Library Not Found"


def test_a_driver_without_gpus_is_no_problem(there: Any) -> None:
    there()
    assert host_facts.gpu_inventory() == ()
    assert host_facts.driver_problem() == ""


def test_gpus_are_in_order_each_with_its_own_model_and_memory(there: Any) -> None:
    there(T4, A100)
    found = host_facts.gpu_inventory()
    assert [(g.index, g.uuid, g.name, g.memory) for g in found] == [
        (0, "GPU-t", "Tesla T4", 15 * GIB),
        (1, "GPU-a", "NVIDIA A100", 40 * GIB),
    ]
    assert not any(gpu.mig for gpu in found)


def test_a_bus_id_is_read_if_the_driver_knows_it(there: Any) -> None:
    there(T4, {**A100, "pci": "00000000:3B:00.0", "slices": SLICES})
    found = host_facts.gpu_inventory()
    assert [gpu.pci for gpu in found] == ["", "00000000:3B:00.0"]
    assert [device.pci for device in devices(found)] == ["", *["00000000:3B:00.0"] * 2]


def test_slices_keep_their_indexes_if_there_are_gaps(there: Any) -> None:
    there(T4, {**A100, "slices": SLICES})
    plain, sliced = host_facts.gpu_inventory()
    assert (plain.mig, plain.slices) == (False, ())
    assert sliced.mig
    assert sliced.slices == (
        Slice(1, "MIG-1", "1g.5gb", 5 * GIB),
        Slice(4, "MIG-4", "3g.20gb", 20 * GIB),
    )
    assert [d.short for d in devices((plain, sliced))] == ["0", "1:1", "1:4"]
    assert [d.name for d in devices((sliced,))] == ["NVIDIA A100 1g.5gb", "NVIDIA A100 3g.20gb"]


def test_a_gpu_that_is_not_in_mig_mode_is_whole(there: Any) -> None:
    there({**A100, "slices": None})
    assert [d.short for d in devices(host_facts.gpu_inventory())] == ["0"]


def test_a_gpu_in_mig_mode_without_slices_offers_nothing(there: Any) -> None:
    there({**A100, "slices": {}}, T4)
    assert [d.short for d in devices(host_facts.gpu_inventory())] == ["1"]


def test_a_gpu_that_does_not_answer_is_omitted_and_the_others_keep_their_indexes(
    there: Any,
) -> None:
    there({**A100, "lost": True}, T4)
    assert [(gpu.index, gpu.uuid) for gpu in host_facts.gpu_inventory()] == [(1, "GPU-t")]


def test_every_start_of_the_library_is_followed_by_its_shutdown(
    there: Any, fake: ModuleType
) -> None:
    there(A100, {**T4, "lost": True})
    host_facts.gpu_inventory()
    host_facts.driver_problem()
    assert fake._users == 0


def test_processes_that_compute_are_named_if_they_are_known(there: Any) -> None:
    busy = {"7": ["/usr/bin/python3 train.py", 3 * GIB], "5": ["", None]}
    on_slice = {"1": {**SLICES["1"], "processes": {"9": ["a.out", GIB // 2]}}}
    there({**T4, "processes": busy}, A100, {**A100, "slices": on_slice})
    named, quiet, sliced = host_facts.gpu_inventory()
    assert named.users == ("process 5", "process 7 (python3), 3.0 GiB")
    assert (quiet.users, sliced.users) == ((), ())
    assert sliced.slices[0].users == ("process 9 (a.out), 0.5 GiB",)
    assert [device.users for device in devices((named, sliced))] == [
        named.users, sliced.slices[0].users,
    ]  # fmt: skip


def test_a_driver_that_does_not_list_processes_is_no_problem(there: Any) -> None:
    there({**T4, "processes": "unknown"})
    assert host_facts.gpu_inventory()[0].users == ()
