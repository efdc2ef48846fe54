"""Two workers without ps, which exchange gradients directly. Crashes: test_matrix.py."""

from __future__ import annotations

from tests.e2e.evidence import codes, output
from tests.e2e.report_page import reported
from tests.kit import Kit

SHORT = "--args=--epochs {} --steps-per-epoch 30 --batch-size 16 --learning-rates 0:2e-3"


def test_two_workers_train_one_model_and_only_the_leader_writes_results(kit: Kit) -> None:
    done = kit.run("up", "all-reduce", "--name", kit.name, SHORT.format(2))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all-reduce between 2 tasks" in done.stderr
    assert codes(kit) == {"worker-0": 0, "worker-1": 0, "evaluator-0": 0}
    reported(kit, "loss", "accuracy", "steps_per_s")
    metrics = kit.outcome()["metrics"]
    assert metrics["updates"] == 60
    assert metrics["staleness_max"] == 0
    assert metrics["validation_accuracy"] > 0.6
    assert (output(kit) / "model" / "saved_model.pb").exists()
    assert len(list((output(kit) / "checkpoints").glob("ckpt-*.index"))) == 2
    assert not list(output(kit).rglob("workertemp*")), "a follower left what it saved"
    writers = {path.name.split(".")[4] for path in output(kit).rglob("events.out.tfevents.*")}
    assert writers == {"worker-0", "evaluator-0"}
