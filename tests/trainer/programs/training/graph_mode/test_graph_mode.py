"""Graph mode without TensorFlow: which task is which replica, on which devices, by which
arguments."""

from __future__ import annotations

import argparse
import json

import pytest

from trainer.agent.errors import ContractError
from trainer.agent.task import read_task
from trainer.programs.training.graph_mode.options import GraphOptions, add_arguments, from_arguments
from trainer.programs.training.graph_mode.replica import DeploymentConfig, replica_of
from trainer.programs.training.program import headline

PS = {"ps": ["p:1"]}


def task(name: str, cluster: dict, **variables: str):
    role, _, index = name.rpartition("-")
    config = {"cluster": cluster, "task": {"type": role, "index": int(index)}}
    return read_task({"TF_CONFIG": json.dumps(config), **variables})


def test_a_lost_ps_comes_with_its_reason_not_with_a_heading():
    reason = "failed to connect to all addresses; last error: UNKNOWN"
    said = f"Graph execution error:\n\nFrom /job:ps/replica:0/task:0:\n{reason}\nAdditional GRPC"
    assert headline(RuntimeError(said)) == reason
    assert headline(RuntimeError("Graph execution error:")) == "Graph execution error:"


def test_one_replica_ignores_the_ps_settings():
    config = DeploymentConfig(num_ps_tasks=3, replica_id=7, ps_job_name="p", worker_job_name="w")
    assert config.worker_device == config.ps_device == ""
    assert config.variables_device() == config.clone_device(0) == "/device:GPU:0"
    assert config.caching_device() is None


def test_several_replicas_require_a_ps():
    with pytest.raises(ContractError, match="At least 1 ps task is needed for distributed train"):
        DeploymentConfig(num_replicas=2)


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ({"num_clones": 0}, "num_clones = 0"),
        ({"num_replicas": 0}, "num_replicas = 0"),
        ({"num_replicas": 2, "num_ps_tasks": 1, "replica_id": 2}, "replica_id = 2"),
    ],
)
def test_impossible_configurations(keys, named):
    with pytest.raises(ContractError, match=named):
        DeploymentConfig(**keys)


def test_devices_with_clones_and_ps():
    config = DeploymentConfig(
        num_clones=2, clone_on_cpu=True, replica_id=1, num_replicas=3, num_ps_tasks=2
    )
    assert config.clone_device(0) == "/job:worker/task:1/device:CPU:0"
    assert config.clone_device(1) == "/job:worker/task:1/device:CPU:1"
    assert [config.clone_scope(i) for i in (0, 1)] == ["clone_0", "clone_1"]
    assert config.inputs_device() == config.optimizer_device() == "/job:worker/task:1/device:CPU:0"
    assert config.variables_device() == "/job:ps/device:CPU:0"
    with pytest.raises(ContractError, match="clone 2"):
        config.clone_device(2)


def test_several_clones_in_one_process_share_variables_on_the_cpu():
    config = DeploymentConfig(num_clones=2)
    assert config.clone_device(1) == "/device:GPU:1"
    assert config.variables_device() == config.optimizer_device() == "/device:CPU:0"


def test_a_single_clone_has_no_scope():
    assert DeploymentConfig().clone_scope(0) == ""


def test_replicas_are_numbered_from_the_chief_on():
    cluster = {"worker": ["a:1", "b:1"], "master": ["c:1"], **PS}
    replicas = [
        replica_of(task(name, cluster, CLUSTER_KIT_SERVERS="ps-0"), GraphOptions(), gpus=0)
        for name in ("master-0", "worker-0", "worker-1")
    ]
    assert [replica.number for replica in replicas] == [0, 1, 2]
    assert replicas[0].names == ("chief-0", "worker-0", "worker-1")
    assert [replica.is_chief for replica in replicas] == [True, False, False]
    assert replicas[0].deployment.worker_device == "/job:master/task:0"
    assert replicas[2].deployment.worker_device == "/job:worker/task:1"


def test_without_a_chief_worker_0_leads():
    replica = replica_of(task("worker-0", {"worker": ["a:1", "b:1"], **PS}), GraphOptions(), 0)
    assert replica.is_chief
    assert replica.others == {"worker-1": "b:1"}


def test_a_single_task_is_one_replica():
    for found in (task("worker-0", {"worker": ["a:1"]}), read_task({})):
        replica = replica_of(found, GraphOptions(update="sync"), gpus=0)
        assert (replica.count, replica.is_chief, replica.gradients_per_round) == (1, True, 0)


def test_workers_that_only_run_servers_are_refused():
    served = {"chief": ["c:1"], "worker": ["a:1"], **PS}
    with pytest.raises(ContractError, match=r"worker-0 only serve.*all-tasks"):
        replica_of(task("chief-0", served, CLUSTER_KIT_SERVERS="ps-0,worker-0"), GraphOptions(), 0)


def test_a_ps_does_not_train():
    with pytest.raises(ContractError, match="ps-0 runs a graph-mode program"):
        replica_of(task("ps-0", {"worker": ["a:1"], **PS}), GraphOptions(), 0)


def test_each_clone_needs_a_gpu_or_the_cpu():
    alone = task("worker-0", {"worker": ["a:1"]})
    with pytest.raises(ContractError, match="num_clones = 3, but worker-0 sees 2 GPUs"):
        replica_of(alone, GraphOptions(num_clones=3), gpus=2)
    assert replica_of(alone, GraphOptions(num_clones=2), gpus=2).deployment.clone_on_cpu is False
    for on_cpu in (
        replica_of(alone, GraphOptions(num_clones=3), gpus=0),
        replica_of(alone, GraphOptions(num_clones=3, clone_on_cpu=True), gpus=2),
    ):
        assert on_cpu.deployment.clone_device(2) == "/device:CPU:2"


def test_backup_workers():
    three = task("worker-0", {"worker": ["a:1", "b:1", "c:1"], **PS})
    chosen = GraphOptions(update="sync", backup_workers=1)
    assert replica_of(three, chosen, 0).gradients_per_round == 2
    with pytest.raises(ContractError, match="backup_workers = 3 of 3"):
        replica_of(three, GraphOptions(update="sync", backup_workers=3), 0)
    with pytest.raises(ContractError, match="add --update sync"):
        replica_of(three, GraphOptions(backup_workers=1), 0)


def test_arguments_become_options_and_a_program_may_have_different_defaults():
    parser = argparse.ArgumentParser()
    add_arguments(parser, without=("steps",), keep=3)
    given = parser.parse_args(["--num-clones", "2", "--update", "sync", "--no-clone-on-cpu"])
    chosen = from_arguments(given, steps=7)
    assert chosen == GraphOptions(steps=7, num_clones=2, update="sync", keep=3)


@pytest.mark.parametrize(
    "wrong", [["--steps", "0"], ["--save-secs", "-1"], ["--update", "both"], ["--keep", "x"]]
)
def test_invalid_arguments_are_refused(wrong, capsys):
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    with pytest.raises(SystemExit):
        parser.parse_args(wrong)
    assert wrong[0] in capsys.readouterr().err
