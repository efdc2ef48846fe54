"""A task's own limits lie over its role's: every field, those of tomorrow included."""

from __future__ import annotations

import pytest
from pydantic import Field

from cluster_kit.manifest.schema import Limits, TaskLimits, overlay
from tests.make import manifest
from tests.unit.manifests import GIVEN, LIMITS, NOT_DRAWN, OTHERS


class Tomorrow(Limits):
    """Limits with a key that does not exist yet."""

    priority: int | None = None
    labels: dict[str, str] = Field(default_factory=dict)


def test_every_key_is_tried_here() -> None:
    assert GIVEN.keys() == OTHERS.keys() == Limits.model_fields.keys()


def test_every_key_is_drawn_for_manifests_of_any_kind_or_known_not_to_be() -> None:
    """`make fuzz` would not see a key that is left out there."""
    assert sorted([*LIMITS, *NOT_DRAWN]) == sorted(Limits.model_fields)


@pytest.mark.parametrize("key", GIVEN)
def test_a_key_of_the_role_holds_where_the_task_says_nothing(key: str) -> None:
    role = Limits.model_validate({key: GIVEN[key]})
    assert overlay(role, TaskLimits()) == role != Limits()


@pytest.mark.parametrize("key", GIVEN)
def test_a_key_of_the_task_holds_over_the_roles(key: str) -> None:
    role = Limits.model_validate(OTHERS)
    task = TaskLimits.model_validate({key: GIVEN[key]})
    assert overlay(role, task) == Limits.model_validate(OTHERS | {key: GIVEN[key]})


def test_a_key_that_is_added_to_the_schema_is_not_forgotten() -> None:
    role = Tomorrow(priority=1, labels={"a": "role", "b": "role"})
    assert overlay(role, Tomorrow()) == role
    assert overlay(role, Tomorrow(priority=0, labels={"a": "task"})) == Tomorrow(
        priority=0, labels={"a": "task", "b": "role"}
    )


def test_the_limits_of_a_task_are_found_by_role_and_index() -> None:
    asked = manifest(role={"ps": {"cpus": 1.0}}, task={"ps-1": {"memory": "1g"}})
    assert asked.limits_of("ps", 0) == Limits(cpus=1.0)
    assert asked.limits_of("ps", 1) == Limits.model_validate({"cpus": 1.0, "memory": "1g"})
    assert asked.limits_of("worker", 1) == Limits()
