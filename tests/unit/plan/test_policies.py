"""Who decides that the job succeeded, as the plan resolves it and the tasks are told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cluster_kit.platforms.container import plan_hash
from cluster_kit.platforms.variables import shared_variables
from cluster_kit.resolved import RestartCodes, SuccessRule
from tests.make import cluster

EACH = {"chief": 0, "ps": 0}


@pytest.mark.parametrize(
    ("keys", "needed"),
    [
        ({**EACH, "worker": 4, "success": {"worker": 0.5}}, {"worker": 2}),
        ({**EACH, "worker": 3, "success": {"worker": 0.5}}, {"worker": 2}),
        ({**EACH, "worker": 10, "success": {"worker": 0.7}}, {"worker": 7}),
        ({**EACH, "worker": 100, "success": {"worker": 0.001}}, {"worker": 1}),
        ({**EACH, "worker": 4, "success": "all"}, {"worker": 4}),
        ({"style": "all-tasks", "worker": 3, "success": "all"}, {"chief": 1, "worker": 3}),
        ({"style": "all-tasks", "success": {"worker": 1, "chief": 1}}, {"chief": 1, "worker": 2}),
        ({"style": "all-tasks", "ps_runs": "program", "success": "all"}, {"chief": 1, "worker": 2}),
        ({"success": "all"}, {"chief": 1}),
        ({"success": {"chief": 0.5}}, {"chief": 1}),
    ],
)
def test_the_number_of_tasks_that_must_end_well(keys: dict[str, Any], needed: Any) -> None:
    rule = cluster(**keys).success
    assert rule is not None and dict(rule.needed) == needed


def test_without_the_keys_the_leader_decides_and_nothing_changes() -> None:
    plain, written = cluster(), cluster(success="leader", restart={"permanent": []})
    assert plain.success is None and plain.restart == RestartCodes()
    assert plan_hash(plain) == plan_hash(written)
    assert not [name for name in shared_variables(plain) if "SUCCESS" in name or "RESTART" in name]


def test_an_evaluator_counts_unless_its_share_is_0() -> None:
    for share, counts in ((0, False), (1, True)):
        rule = cluster(evaluator=1, success={"chief": 1, "evaluator": share}).success
        assert rule == SuccessRule(
            f"{{chief = 1, evaluator = {share}}}", (("chief", 1),), evaluator=counts
        )


def test_the_tasks_get_the_rules_as_variables() -> None:
    made = cluster(
        **EACH,
        worker=4,
        success={"worker": 0.5},
        restart={"permanent": [3, "64-78"], "retryable": ["129-255"]},
    )
    variables = shared_variables(made)
    assert json.loads(variables["CLUSTER_KIT_SUCCESS"]) == {
        "text": "{worker = 0.5}", "needed": {"worker": 2}
    }  # fmt: skip
    assert json.loads(variables["CLUSTER_KIT_RESTART"]) == {
        "permanent": [[3, 3], [64, 78]], "retryable": [[129, 255]]
    }  # fmt: skip
    assert plan_hash(made) != plan_hash(cluster(**EACH, worker=4))
