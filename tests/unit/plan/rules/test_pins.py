"""Fixed addresses of tasks."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network

from cluster_kit.plan.cluster_rules import find_pins
from tests.make import cluster, manifest

SUBNET = IPv4Network("172.28.0.0/24")


def test_a_pinned_task_has_its_address_and_moves_no_other() -> None:
    usual = {task.name: task.ip for task in cluster(subnet=str(SUBNET)).tasks}
    pinned = cluster(subnet=str(SUBNET), task={"worker-0": {"ip": "172.28.0.9"}})
    found = {task.name: task.ip for task in pinned.tasks}
    assert found == usual | {"worker-0": IPv4Address("172.28.0.9")}


def test_two_tasks_may_exchange_their_addresses() -> None:
    swapped = {"worker-0": {"ip": "172.28.0.101"}, "worker-1": {"ip": "172.28.0.100"}}
    pins, problems = find_pins(manifest(subnet=str(SUBNET), task=swapped), SUBNET)
    assert not problems
    assert list(pins) == ["worker-0", "worker-1"]


def test_every_invalid_address_is_reported() -> None:
    bad = {"worker-0": {"ip": "x"}, "worker-1": {"ip": "10.0.0.1"}, "ps-0": {"ip": "172.28.0.1"}}
    _, problems = find_pins(manifest(subnet=str(SUBNET), task=bad), SUBNET)
    assert [problem.key_path for problem in problems] == [
        "task.worker-0.ip", "task.worker-1.ip", "task.ps-0.ip",
    ]  # fmt: skip
