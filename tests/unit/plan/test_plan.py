"""What a manifest says of single roles and tasks reaches the tasks."""

from __future__ import annotations

from typing import Any

import pytest

from cluster_kit.manifest.limits import Limits
from tests.make import cluster, gpus, host

GIVEN: dict[str, Any] = {
    "cpus": 0.5,
    "memory": "1g",
    "bandwidth": "1mbit",
    "environment": {"A": "1"},
    "secrets": ["B"],
    "env_file": "some.env",
    "shm_size": "512m",
    "ulimits": {"nofile": 1024},
    "ports": [6006],
    "nodes": "disk==ssd",
    "gpus": ["1"],
}
"""One value of every key of `[role.…]`: a key that is added to the schema needs one here."""


def test_every_key_of_a_role_is_tried() -> None:
    assert GIVEN.keys() == Limits.model_fields.keys()


@pytest.mark.parametrize("key", GIVEN)
def test_a_key_of_a_role_or_of_a_task_changes_that_task_and_no_other(key: str) -> None:
    facts, table = host(gpus=gpus(2)), {key: GIVEN[key]}
    # What only a swarm can do is tried on one, what only this host can do here.
    on = {"engine": "swarm"} if key == "nodes" else {}
    usual = cluster(facts, **on).tasks
    for where in ({"role": {"chief": table}}, {"task": {"chief-0": table}}):
        tasks = cluster(facts, **on, **where).tasks
        changed = [new.name for new, old in zip(tasks, usual, strict=True) if new != old]
        assert changed == ["chief-0"]
