"""What a manifest says of single roles and tasks reaches the tasks."""

from __future__ import annotations

import pytest

from tests.make import cluster, gpus, host
from tests.unit.manifest.test_limits import GIVEN


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
