"""Limits compared with what the host has, and reserved variables."""

from __future__ import annotations

from typing import Any

import pytest

from cluster_kit.plan.container_rules import check_limits
from tests.make import GIB, host, manifest

HOST = host(cpus=4, memory=8 * GIB)


def key_paths(**keys: Any) -> list[str]:
    return [problem.key_path for problem in check_limits(manifest(**keys), HOST)]


def test_exactly_what_the_host_has_is_accepted() -> None:
    assert not key_paths(worker=1, ps=0, role={"worker": {"cpus": 4.0, "memory": "8g"}})


def test_the_sum_uses_each_tasks_own_table_instead_of_its_roles() -> None:
    three = {"worker": 3, "role": {"worker": {"memory": "3g"}}}
    assert key_paths(**three) == ["memory"]
    assert not key_paths(**three, task={"worker-0": {"memory": "1g"}, "worker-2": {"memory": "4g"}})
    elsewhere = {"worker-0": {"memory": "2500m"}, "worker-9": {"memory": "100m"}}
    assert key_paths(**three, task=elsewhere) == ["memory"], "a task that does not exist counts not"


def test_a_single_task_that_is_too_large_is_reported_once() -> None:
    assert key_paths(role={"ps": {"memory": "9g"}}) == ["role.ps.memory"]


def test_a_limit_below_the_memory_of_an_idle_server_is_refused() -> None:
    assert key_paths(role={"ps": {"memory": "81m"}}) == ["role.ps.memory"]
    assert key_paths(task={"ps-0": {"memory": "8m"}}) == ["task.ps-0.memory"]
    assert not key_paths(role={"ps": {"memory": "82m"}})


@pytest.mark.parametrize("switch", ["COUNT_STEPS", "DEVICE_FILTERS", "SCHEDULING"])
def test_users_set_the_switches_of_their_programs(switch: str) -> None:
    value = "batch" if switch == "SCHEDULING" else "off"
    assert not key_paths(role={"ps": {"environment": {f"CLUSTER_KIT_{switch}": value}}})


def test_an_unknown_scheduling_is_refused() -> None:
    def found(value: str) -> list[str]:
        return key_paths(role={"ps": {"environment": {"CLUSTER_KIT_SCHEDULING": value}}})

    assert found("fast") == ["role.ps.environment.CLUSTER_KIT_SCHEDULING"]
    assert not found("normal")


@pytest.mark.parametrize("name", ["TF_CONFIG", "CUDA_VISIBLE_DEVICES", "CLUSTER_KIT_X", "A-B", ""])
def test_reserved_and_invalid_variables_are_refused(name: str) -> None:
    assert key_paths(role={"ps": {"environment": {name: "1"}}}) == [f"role.ps.environment.{name}"]


@pytest.mark.parametrize("name", ["TF_CPP_MIN_LOG_LEVEL", "_", "cuda_visible_devices"])
def test_any_other_variable_is_accepted(name: str) -> None:
    assert not key_paths(role={"ps": {"environment": {name: "1"}}})
