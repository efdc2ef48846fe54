"""Two clones in each of two workers, on logical CPU devices, in real containers."""

from __future__ import annotations

from tests.e2e.evidence import log, output
from tests.e2e.report_page import reported
from tests.kit import Kit


def test_clones_train_the_quickstarts_model(kit: Kit) -> None:
    arguments = "--epochs 4 --steps-per-epoch 30 --log-steps 30"
    done = kit.run("up", "clones", "--name", kit.name, f"--args={arguments}")
    assert done.returncode == 0, done.stdout + done.stderr
    reported(kit, "loss", "steps_per_s")
    metrics = kit.outcome()["metrics"]
    assert metrics["updates"] == metrics["steps_of_worker-0"] == metrics["steps_of_worker-1"] == 120
    assert metrics["staleness_max"] == 0
    assert metrics["test_accuracy"] > 0.9
    assert metrics["validation_accuracy"] > 0.9
    for worker in ("worker-0", "worker-1"):
        assert "sync, 2 of 2 gradients a round; 2 clones on CPU:0, CPU:1" in log(kit, worker)
    kept = {path.name for path in (output(kit) / "checkpoints").glob("*.index")}
    assert kept == {f"ckpt-{epoch}.index" for epoch in (1, 2, 3, 4)} | {"model.ckpt-120.index"}
    assert (output(kit) / "model" / "saved_model.pb").exists()
    assert (output(kit) / "best" / "saved_model.pb").exists()
