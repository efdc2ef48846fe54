"""Shared values are read from one file, and a task's own variables override them."""

import json

import pytest

from trainer.agent.errors import ContractError
from trainer.agent.task import read_task
from trainer.agent.task_environment import missing_variables

CLUSTER = {"master": ["chief-0:2222"], "worker": ["worker-0:2222"], "ps": ["ps-0:2222"]}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "cluster.json"
    variables = {"CLUSTER_KIT_SERVERS": "worker-0,ps-0", "NO_PROXY": "worker-0"}
    path.write_text(json.dumps({"cluster": CLUSTER, "variables": variables}))
    return str(path)


def test_a_task_finds_its_place_in_the_shared_cluster(file):
    for name, job in (("ps-0", "ps"), ("chief-0", "master")):
        env = {"CLUSTER_KIT_SHARED": file, "CLUSTER_KIT_TASK": name}
        added = missing_variables(env)
        assert json.loads(added["TF_CONFIG"]) == {
            "cluster": CLUSTER,
            "task": {"type": job, "index": 0},
        }
        task = read_task({**env, **added})
        assert task.name == name
        assert task.servers == {"worker-0": "worker-0:2222", "ps-0": "ps-0:2222"}


def test_a_tasks_own_variables_are_kept(file):
    own = {"TF_CONFIG": "{}", "CLUSTER_KIT_SERVERS": "", "CLUSTER_KIT_TASK": "evaluator-0"}
    added = missing_variables({"CLUSTER_KIT_SHARED": file, **own})
    assert json.loads(added.pop("CLUSTER_KIT_TRAINING")) == CLUSTER, "for an Estimator"
    assert added == {"NO_PROXY": "worker-0"}


def test_nothing_is_added_without_a_file():
    assert missing_variables({"CLUSTER_KIT_TASK": "ps-0"}) == {}


@pytest.mark.parametrize("content", ["", "[]", '{"cluster": {}}', None])
def test_an_invalid_file_is_named(tmp_path, content):
    path = tmp_path / "cluster.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ContractError, match="CLUSTER_KIT_SHARED"):
        missing_variables({"CLUSTER_KIT_SHARED": str(path), "CLUSTER_KIT_TASK": "ps-0"})
