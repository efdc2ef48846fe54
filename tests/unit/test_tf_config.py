"""TF_CONFIG, read back out of the rendered file as a container would."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_kit.cluster import Cluster
from cluster_kit.render import render
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


@given(coordinated | reduced)
def test_every_task_finds_itself_and_all_agree(keys: dict[str, Any]) -> None:
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


@given(coordinated | reduced)
def test_the_evaluator_and_the_training_cluster_never_meet(keys: dict[str, Any]) -> None:
    for name, config in configs(cluster(**keys)).items():
        alone = name.startswith("evaluator")
        assert (list(config["cluster"]) == ["evaluator"]) == alone
        assert ("evaluator" in config["cluster"]) == alone


@pytest.mark.parametrize(("addressing", "host"), [("ip", "172.28.0.100"), ("name", "worker-0")])
def test_addresses_are_ips_or_names(addressing: Addressing, host: str) -> None:
    made = cluster(addressing=addressing, subnet="172.28.0.0/24", port=4000)
    assert configs(made)["chief-0"]["cluster"]["worker"][0] == f"{host}:4000"
