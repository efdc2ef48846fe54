"""An evaluator gets the training cluster if its program may be an Estimator."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cluster_kit.platforms.container import task_containers
from cluster_kit.platforms.platform import platform_of
from cluster_kit.platforms.variables import TRAINING
from tests.make import cluster

KEYS: dict[str, Any] = {"evaluator": 1, "worker": 1, "ps": 1}


@pytest.mark.parametrize("keys", [{"tensorflow": "2.15"}, {"image": "mine:1"}])
def test_only_the_evaluator_has_the_training_cluster(
    keys: dict[str, Any],
) -> None:
    made = cluster(**KEYS, **keys)
    names = [task.name for task in made.tasks]
    specs = dict(zip(names, task_containers(made), strict=True))
    training = json.loads(specs["evaluator-0"].environment[TRAINING])
    assert training == json.loads(specs["worker-0"].environment["TF_CONFIG"])["cluster"]
    assert "evaluator" not in training and len(training["chief"]) == 1
    assert not any(TRAINING in specs[name].environment for name in ("chief-0", "worker-0", "ps-0"))


@pytest.mark.parametrize("version", ["", "2.16", "2.21.0", "nightly"])
def test_with_a_tensorflow_without_estimators_it_has_none(version: str) -> None:
    specs = task_containers(cluster(**KEYS, tensorflow=version))
    assert not any(TRAINING in spec.variables for spec in specs)


@pytest.mark.parametrize("engine", ["swarm", "kubernetes"])
def test_if_a_file_has_the_cluster_no_variable_has_it_again(engine: str) -> None:
    made = cluster(**KEYS, tensorflow="2.15", engine=engine)
    assert TRAINING not in platform_of(engine).render(made)
