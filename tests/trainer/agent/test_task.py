"""Reading TF_CONFIG and the contract's variables."""

from __future__ import annotations

import json

import pytest

from trainer.agent.errors import ContractError, ServerError
from trainer.agent.injected.gpu_promises import Gpu
from trainer.agent.servers import serve
from trainer.agent.task import read_task

CLUSTER = {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1"]}


def environment(role: str = "chief", index: int = 0, cluster: dict | None = None, **more: str):
    config = {"cluster": cluster or CLUSTER, "task": {"type": role, "index": index}}
    return {"TF_CONFIG": json.dumps(config), **more}


def test_a_chief_leads_and_knows_its_servers():
    task = read_task(environment(CLUSTER_KIT_JOB_DEADLINE_S="5"))
    assert (task.name, task.is_leader, task.job_deadline_s) == ("chief-0", True, 5.0)
    assert task.servers == {"worker-0": "b:1", "worker-1": "c:1", "ps-0": "d:1"}


def test_workers_do_not_serve_without_a_chief():
    task = read_task(environment("worker", 1, {"worker": ["b:1", "c:1"], "ps": ["d:1"]}))
    assert not task.is_leader
    assert task.leader == "worker-0"
    assert task.servers == {"ps-0": "d:1"}


def test_the_host_may_name_the_servers():
    task = read_task(environment(CLUSTER_KIT_SERVERS="ps-0"))
    assert task.servers == {"ps-0": "d:1"}
    with pytest.raises(ContractError, match="ps-7"):
        read_task(environment(CLUSTER_KIT_SERVERS="ps-7"))


def test_without_tf_config_the_task_is_a_single_worker():
    task = read_task({})
    assert (task.name, task.is_leader, task.servers) == ("worker-0", True, {})


@pytest.mark.parametrize(("given", "on"), [("on", True), ("", False), (None, False)])
def test_switches_for_tensorflow_1_and_own_servers(given, on):
    variables = (
        {} if given is None else {"CLUSTER_KIT_OLD_API": given, "CLUSTER_KIT_OWN_SERVER": given}
    )
    task = read_task(environment(**variables))
    assert (task.tf1, task.own_server) == (on, on)


def test_parsing_of_promises():
    task = read_task(
        environment(
            CLUSTER_KIT_GPUS='["0", {"name": "GPU 1", "uuid": "GPU-1"}]',
            CLUSTER_KIT_PROMISES='{"worker-0": ["0"], "ps-0": []}',
            CLUSTER_KIT_SIMULATE_GPUS="2",
        )
    )
    assert task.gpus == (Gpu("0"), Gpu("GPU 1", uuid="GPU-1"))
    assert task.promises == {"worker-0": (Gpu("0"),), "ps-0": ()}
    assert (task.simulate_gpus, task.gpu_check) == (2, True)
    assert not read_task(environment(CLUSTER_KIT_GPU_CHECK="off")).gpu_check


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"TF_CONFIG": "{"}, "must be JSON"),
        ({"TF_CONFIG": "[]"}, "must be JSON"),
        (environment("worker", 2), "worker-2 is not in its own cluster"),
        (environment(CLUSTER_KIT_TASK="ps-0"), "must agree"),
        (environment(CLUSTER_KIT_BEACON="nowhere"), "host:port"),
        (environment(CLUSTER_KIT_SERVER="go"), "native or python"),
        (environment(CLUSTER_KIT_RETRIES="-1"), "0 or more"),
        (environment(CLUSTER_KIT_PROMISES="[1]"), "must be a JSON list"),
        (environment(CLUSTER_KIT_PROMISES='{"worker-0": 1}'), "must be a JSON list"),
        (environment(CLUSTER_KIT_GPUS="0"), "JSON list of"),
        (environment(CLUSTER_KIT_GPUS='[{"uuid": "GPU-1"}]'), "JSON list of"),
        (environment(CLUSTER_KIT_START_DEADLINE_S="soon"), "0 or more"),
    ],
)
def test_invalid_variables_are_named(wrong: dict, says: str):
    with pytest.raises(ContractError, match=says) as caught:
        read_task(wrong)
    assert caught.value.exit_code == 2


def test_a_server_with_fewer_gpus_than_limits_starts_nevertheless(monkeypatch):
    """So that the leader can report what it sees; TensorFlow refuses more limits than GPUs."""
    tried = []

    def start_with(task, gpus: int) -> str:
        tried.append(gpus)
        if gpus:
            raise ServerError("Not enough GPUs to create virtual devices.")
        return "grpc://here"

    monkeypatch.setattr(serve, "start_server_with", start_with)
    monkeypatch.setattr(serve, "check_port", lambda address: None)
    variables = {"CLUSTER_KIT_GPUS": '["0","1","2"]', "CLUSTER_KIT_GPU_MEMORY_MB": "100"}
    assert serve.start_server(read_task(environment("worker", 1, **variables))) == "grpc://here"
    assert tried == [3, 2, 1, 0]
