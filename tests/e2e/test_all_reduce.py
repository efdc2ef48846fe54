"""Two workers without ps: gradients go round between them, and a crash of one costs only time."""

from __future__ import annotations

import os
import signal

import docker
import pytest

from tests.e2e.test_recovery import pid_of
from tests.kit import Kit

SHORT = "--args=--epochs {} --steps-per-epoch 30 --batch-size 16 --learning-rates 0:2e-3"


def test_two_workers_train_one_model_and_the_leader_alone_leaves_results(kit: Kit) -> None:
    done = kit.run("up", "all-reduce", "--name", kit.name, SHORT.format(2))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all-reduce between 2 tasks" in done.stderr
    outcome = kit.outcome()
    assert {task["name"]: task["exit_code"] for task in outcome["tasks"]} == {
        "worker-0": 0, "worker-1": 0, "evaluator-0": 0,
    }  # fmt: skip
    metrics = outcome["metrics"]
    assert metrics["updates"] == 60
    assert metrics["staleness_max"] == 0
    assert metrics["validation_accuracy"] > 0.6
    output = kit.root / "runs" / kit.name / "latest" / "output"
    assert (output / "model" / "saved_model.pb").exists()
    assert len(list((output / "checkpoints").glob("ckpt-*.index"))) == 2
    assert not list(output.rglob("workertemp*")), "a follower left what it saved"
    writers = {path.name.split(".")[4] for path in output.rglob("events.out.tfevents.*")}
    assert writers == {"worker-0", "evaluator-0"}


@pytest.mark.parametrize("victim", ["worker-1", "worker-0"])
@pytest.mark.skipif(os.geteuid() != 0, reason="killing a container's process takes root")
def test_a_killed_worker_comes_back_and_all_go_on_from_the_backup(
    kit: Kit, client: docker.DockerClient, victim: str
) -> None:
    process = kit.start("up", "all-reduce", "--name", kit.name, SHORT.format(5))
    try:
        assert process.stdout is not None
        next(line for line in process.stdout if "epoch 2/5" in line)
        os.kill(pid_of(client, kit, victim), signal.SIGKILL)
        said, _ = process.communicate(timeout=200)
    finally:
        process.kill()
    assert process.returncode == 0, said
    outcome = kit.outcome()
    assert outcome["metrics"]["updates"] == 150, "epochs were lost, or trained twice"
    logs = kit.root / "runs" / kit.name / "latest" / "logs"
    survivor = "worker-0" if victim == "worker-1" else "worker-1"
    assert f"the connection to {victim} was lost" in (logs / f"{survivor}.log").read_text()
