"""Two workers without ps: gradients go round between them, and a crash of one costs only time."""

from __future__ import annotations

import docker

from tests.e2e.evidence import codes, log, output
from tests.e2e.running import kill_task, needs_root, read_until, running
from tests.kit import Kit

SHORT = "--args=--epochs {} --steps-per-epoch 30 --batch-size 16 --learning-rates 0:2e-3"


def test_two_workers_train_one_model_and_the_leader_alone_leaves_results(kit: Kit) -> None:
    done = kit.run("up", "all-reduce", "--name", kit.name, SHORT.format(2))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all-reduce between 2 tasks" in done.stderr
    assert codes(kit) == {"worker-0": 0, "worker-1": 0, "evaluator-0": 0}
    metrics = kit.outcome()["metrics"]
    assert metrics["updates"] == 60
    assert metrics["staleness_max"] == 0
    assert metrics["validation_accuracy"] > 0.6
    assert (output(kit) / "model" / "saved_model.pb").exists()
    assert len(list((output(kit) / "checkpoints").glob("ckpt-*.index"))) == 2
    assert not list(output(kit).rglob("workertemp*")), "a follower left what it saved"
    writers = {path.name.split(".")[4] for path in output(kit).rglob("events.out.tfevents.*")}
    assert writers == {"worker-0", "evaluator-0"}


@needs_root
def test_killed_workers_come_back_and_all_go_on_from_the_backup(
    kit: Kit, client: docker.DockerClient
) -> None:
    short = (SHORT.format(6), "--set", "evaluator=0")
    pairs = (("worker-1", "worker-0"), ("worker-0", "worker-1"))
    with running(kit, "up", "all-reduce", "--name", kit.name, *short) as process:
        for (victim, _survivor), epoch in zip(pairs, (2, 4), strict=True):
            read_until(process, f"epoch {epoch}/6")
            kill_task(client, kit, victim)
        said, _ = process.communicate(timeout=200)
    assert process.returncode == 0, said
    assert kit.outcome()["metrics"]["updates"] == 180, "epochs were lost, or trained twice"
    for victim, survivor in pairs:
        assert f"the connection to {victim} was lost" in log(kit, survivor)
