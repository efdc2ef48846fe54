"""With a TensorFlow that has Estimators, an evaluator's program finds the cluster that they
require."""

import json

import pytest
from conftest import IMAGE

ALONE = {"evaluator": ["127.0.0.1:1"]}
TRAINING = {"chief": ["127.0.0.1:2"], "worker": ["127.0.0.1:3"]}
SHOW = """
import os
print("config", os.environ["TF_CONFIG"])
print("training", os.environ.get("CLUSTER_KIT_TRAINING"))
"""


def shown(run_task, tmp_path, training, **variables):
    """Returns the variables that the program of an evaluator finds."""
    (tmp_path / "program.py").write_text(SHOW)
    task = run_task(
        *("evaluator-0", ALONE, "run", str(tmp_path / "program.py")),
        anew=True,
        CLUSTER_KIT_TRAINING=json.dumps(training),
        CLUSTER_KIT_LEADER="evaluator-0",
        **variables,
    )
    assert task.wait(30) == 0, task.stdout.read()
    lines = task.stdout.read().splitlines()
    found = next(line for line in lines if line.startswith("config "))
    assert "training None" in lines, "the variable is the supervisor's"
    return json.loads(found.removeprefix("config "))


@pytest.fixture
def estimators(tmp_path):
    """Returns the path of a package like TensorFlow below 2.16, for PYTHONPATH."""
    (tmp_path / "old" / "tensorflow_estimator").mkdir(parents=True)
    (tmp_path / "old" / "tensorflow_estimator" / "__init__.py").touch()
    return {"PYTHONPATH": f"{IMAGE}:{tmp_path / 'old'}"}


def test_the_evaluator_finds_the_training_cluster_without_itself(run_task, tmp_path, estimators):
    assert shown(run_task, tmp_path, TRAINING, **estimators) == {
        "cluster": TRAINING,
        "task": {"type": "evaluator", "index": 0},
    }


def test_without_a_chief_the_evaluator_is_alone_in_its_cluster(run_task, tmp_path, estimators):
    """An Estimator would refuse that cluster, and other programs expect their own."""
    found = shown(run_task, tmp_path, {"worker": ["127.0.0.1:3"]}, **estimators)
    assert found["cluster"] == ALONE


def test_a_tensorflow_without_estimators_changes_nothing(run_task, tmp_path):
    assert shown(run_task, tmp_path, TRAINING)["cluster"] == ALONE
