"""Secrets from the caller's environment become files before the program starts."""

from __future__ import annotations

import json

import pytest

from trainer.agent import task_environment
from trainer.agent.errors import ContractError


def wanted(**rows):
    return json.dumps({name: {"variable": v, "stays": s} for name, (v, s) in rows.items()})


def test_a_value_becomes_a_file_that_only_this_user_can_read(tmp_path):
    given = {
        "A": "it's\nmine",
        "B": "too",
        "CLUSTER_KIT_SECRETS": wanted(a=("A", False), b=("B", True)),
    }
    for _ in range(2):  # A second attempt in the same container finds the files.
        environment = dict(given)
        task_environment.write_secrets(environment, tmp_path)
        assert environment == {"B": "too"}
    assert (tmp_path / "a").read_text() == "it's\nmine"
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o400


def test_one_variable_for_two_files(tmp_path):
    environment = {"A": "x", "CLUSTER_KIT_SECRETS": wanted(a=("A", False), b=("A", False))}
    task_environment.write_secrets(environment, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
    assert environment == {}


@pytest.mark.parametrize("text", ["{", "[]", '{"a": 1}', '{"a": {}}'])
def test_values_that_the_host_never_sends(text, tmp_path):
    with pytest.raises(ContractError, match="must be JSON"):
        task_environment.write_secrets({"CLUSTER_KIT_SECRETS": text}, tmp_path)


def test_a_missing_variable_is_named_without_a_value(tmp_path):
    with pytest.raises(ContractError, match=r"A is not set: .* the secret a"):
        task_environment.write_secrets({"CLUSTER_KIT_SECRETS": wanted(a=("A", False))}, tmp_path)
    environment = {"A": "the-value", "CLUSTER_KIT_SECRETS": wanted(a=("A", False))}
    with pytest.raises(ContractError, match="cannot write") as told:
        task_environment.write_secrets(environment, tmp_path / "absent")
    assert "the-value" not in str(told.value)
