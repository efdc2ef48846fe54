"""TF_CONFIG, read from the rendered file as a container would read it."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_kit.platforms.compose.compose_file import render
from cluster_kit.resolved import Cluster
from tests.make import cluster, parse_compose

Addressing = Literal["ip", "name"]
coordinated = st.fixed_dictionaries(
    {
        "worker": st.integers(1, 9),
        "ps": st.integers(1, 5),
        "evaluator": st.integers(0, 1),
        "addressing": st.sampled_from(("ip", "name")),
    }
)
reduced = st.fixed_dictionaries(
    {
        "chief": st.just(0),
        "worker": st.integers(1, 9),
        "ps": st.just(0),
        "evaluator": st.integers(0, 1),
    }
)


def configs(of: Cluster) -> dict[str, Any]:
    services = parse_compose(render(of))["services"]
    return {name: json.loads(s["environment"]["TF_CONFIG"]) for name, s in services.items()}


graph_mode = st.fixed_dictionaries(
    {
        "style": st.just("all-tasks"),
        "chief": st.integers(0, 1),
        "worker": st.integers(1, 9),
        "ps": st.integers(0, 5),
        "evaluator": st.integers(0, 1),
        "ps_runs": st.sampled_from(("server", "program")),
    }
)


@given(coordinated | reduced | graph_mode)
def test_every_task_finds_itself_and_all_have_the_same_cluster(keys: dict[str, Any]) -> None:
    made = cluster(**keys)
    found = configs(made)
    for task in made.tasks:
        config = found[task.name]
        assert config["task"] == {"type": task.role, "index": task.index}
        assert config["cluster"][task.role][task.index] == made.address(task)
    training = [found[task.name]["cluster"] for task in made.tasks if task.role != "evaluator"]
    assert all(spec == training[0] for spec in training)
    counted = {role: len(addresses) for role, addresses in training[0].items()}
    roles = ("chief", "worker", "ps")
    assert counted == {role: len(made.of(role)) for role in roles if made.of(role)}  # type: ignore[arg-type]


@given(coordinated | reduced | graph_mode)
def test_the_evaluator_is_not_in_the_training_cluster(keys: dict[str, Any]) -> None:
    for name, config in configs(cluster(**keys)).items():
        alone = name.startswith("evaluator")
        assert (list(config["cluster"]) == ["evaluator"]) == alone
        assert ("evaluator" in config["cluster"]) == alone


@pytest.mark.parametrize(("addressing", "host"), [("ip", "172.28.0.100"), ("name", "worker-0")])
def test_addresses_are_ips_or_names(addressing: Addressing, host: str) -> None:
    made = cluster(addressing=addressing, subnet="172.28.0.0/24", port=4000)
    assert configs(made)["chief-0"]["cluster"]["worker"][0] == f"{host}:4000"


def test_the_chiefs_job_may_be_called_master_and_its_task_stays_chief_0() -> None:
    made = cluster(chief_job="master", style="all-tasks")
    config = configs(made)["chief-0"]
    assert config["task"] == {"type": "master", "index": 0}
    assert list(config["cluster"]) == ["master", "worker", "ps"]
    assert configs(made)["worker-1"]["cluster"] == config["cluster"]
