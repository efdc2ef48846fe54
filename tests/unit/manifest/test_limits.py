"""A task's own limits override its role's: every field, including future ones."""

from __future__ import annotations

import pytest
from pydantic import Field

from cluster_kit.manifest.schema import Limits, TaskLimits, overlay
from tests.make import manifest
from tests.unit.manifests import GIVEN, LIMITS, NOT_DRAWN, OTHERS


class Tomorrow(Limits):
    """Limits with a further key."""

    priority: int | None = None
    labels: dict[str, str] = Field(default_factory=dict)


def test_every_key_is_tested_here() -> None:
    assert GIVEN.keys() == OTHERS.keys() == Limits.model_fields.keys()


def test_every_key_is_generated_for_random_manifests_or_listed_as_an_exception() -> None:
    """`make fuzz` would not test a key that is missing there."""
    assert sorted([*LIMITS, *NOT_DRAWN]) == sorted(Limits.model_fields)


@pytest.mark.parametrize("key", GIVEN)
def test_a_roles_key_applies_if_the_task_has_none(key: str) -> None:
    role = Limits.model_validate({key: GIVEN[key]})
    assert overlay(role, TaskLimits()) == role != Limits()


@pytest.mark.parametrize("key", GIVEN)
def test_a_tasks_key_overrides_the_roles(key: str) -> None:
    role = Limits.model_validate(OTHERS)
    task = TaskLimits.model_validate({key: GIVEN[key]})
    assert overlay(role, task) == Limits.model_validate(OTHERS | {key: GIVEN[key]})


def test_a_new_key_of_the_schema_is_supported() -> None:
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
