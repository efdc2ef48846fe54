"""Keys of single roles and tasks reach the tasks."""

from __future__ import annotations

import pytest

from tests.make import cluster, gpus, host
from tests.unit.manifest.test_limits import GIVEN


@pytest.mark.parametrize("key", GIVEN)
def test_a_key_of_a_role_or_of_a_task_changes_that_task_and_no_other(key: str) -> None:
    facts, table = host(gpus=gpus(2)), {key: GIVEN[key]}
    # Keys that only a swarm supports are tested on a swarm, keys that only this host supports here.
    on = {"engine": "swarm"} if key == "nodes" else {}
    usual = cluster(facts, **on).tasks
    for where in ({"role": {"chief": table}}, {"task": {"chief-0": table}}):
        tasks = cluster(facts, **on, **where).tasks
        changed = [new.name for new, old in zip(tasks, usual, strict=True) if new != old]
        assert changed == ["chief-0"]


def test_the_data_set_is_a_directory_of_the_host_or_one_of_the_image() -> None:
    assert cluster(data="digits").data_set == "digits"
    assert cluster(data="images").data_set == "/home/you/images"
