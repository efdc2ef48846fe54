"""With TensorFlow: SIGTERM within an epoch loses no step.

The way `async` is tested in containers: tests/e2e/test_resume.py.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
tf = pytest.importorskip("tensorflow", reason="TensorFlow is in the image, not here")

GIVEN = ("--learning-rates", "0:1e-3", "--model", "cnn", "--image-size", "8", "--no-flip")
QUICK, SLOW = 8, 128
"""Batch sizes: a task that is to be stopped within an epoch must be slow on any machine."""
SERVED = ("worker-0", "worker-1", "ps-0")
WAYS = {
    "alone": (200, ("worker-0",), (), {}),
    "mirrored": (150, ("worker-0",), (), {"CLUSTER_KIT_SIMULATE_GPUS": 2}),
    "all-reduce": (60, ("worker-0", "worker-1"), ("--strategy", "all-reduce"), {}),
    "sync": (100, ("chief-0", *SERVED), ("--update", "sync"), {}),
}
"""Steps of an epoch, seconds of slow steps; the tasks, the first of which leads."""


@pytest.mark.parametrize("way", WAYS)
def test_a_stop_within_an_epoch_loses_no_step(
    run_task, events, pictures: Path, free_port, way: str
) -> None:
    steps, names, more, variables = WAYS[way]
    given = (*GIVEN, "--epochs", "2", "--steps-per-epoch", str(steps), *more)
    output = pictures.parent

    def start(batch: int) -> list[subprocess.Popen]:
        sized = (*given, "--batch-size", str(batch))
        cluster: dict[str, list[str]] = {}
        for name in names:
            cluster.setdefault(name.partition("-")[0], []).append(f"127.0.0.1:{free_port()}")
        shared = {
            "CLUSTER_KIT_DATA": pictures, "CLUSTER_KIT_LEADER": names[0], **variables,
            "CLUSTER_KIT_BEACON": f"127.0.0.1:{free_port()}",
        }  # fmt: skip
        if "ps-0" not in names:
            shared["CLUSTER_KIT_SERVERS"] = ""
        return [
            run_task(name, cluster, "serve", **shared)
            if name in SERVED and "ps-0" in names
            else run_task(name, cluster, "run", "classifier", *sized, **shared)
            for name in names
        ]

    tasks = start(SLOW)
    step = within_an_epoch(tasks[0], lambda: events(names[0]))
    began = time.monotonic()
    for task in tasks:
        task.send_signal(signal.SIGTERM)
    outputs = [task.communicate(timeout=30)[0] for task in tasks]
    assert time.monotonic() - began < 15
    assert tasks[0].returncode == 143, outputs
    saved = re.search(r"stopped by SIGTERM; saved step (\d+), in epoch 1", outputs[0])
    assert saved, outputs[0]
    assert step <= int(saved[1]) < steps

    tasks = start(QUICK)
    outputs = [task.communicate(timeout=120)[0] for task in tasks]
    assert [task.returncode for task in tasks] == [0] * len(tasks), outputs
    resumed = re.search(
        rf"continuing at global step (\d+) \(epoch 1, step (\d+) of {steps}\)", outputs[0]
    )
    assert resumed, outputs[0]
    assert resumed[1] == resumed[2]
    assert resumed[1] == saved[1]
    metrics = next(e for e in events(names[0]) if e["event"] == "metrics")
    assert metrics["updates"] == 2 * steps
    assert metrics["test_accuracy"] > 0.9
    assert not (output / "interrupted").exists()


@pytest.mark.parametrize(("before", "now"), [((4,), (2, 2)), ((2, 2), (4,)), ((2, 2), (1, 1, 2))])
def test_a_state_of_another_number_of_ps_is_not_said_to_be_another_models(
    tmp_path: Path, before: tuple[int, ...], now: tuple[int, ...]
) -> None:
    from trainer.programs.training.checkpoint_files import Snapshot
    from trainer.programs.training.program import CheckpointError

    def snapshot(sizes: tuple[int, ...]) -> Snapshot:
        names = [f"w/part_{at}" for at in range(len(sizes))] if len(sizes) > 1 else ["w"]
        variables = {
            name: tf.Variable(tf.zeros(size)) for name, size in zip(names, sizes, strict=True)
        }
        return Snapshot(variables, tf.distribute.get_strategy(), "/device:CPU:0")

    snapshot(before).write(str(tmp_path / "state"))
    with pytest.raises(CheckpointError, match="was saved with another number of ps: w is in"):
        snapshot(now).read(str(tmp_path / "state"))


def within_an_epoch(leader: subprocess.Popen, read) -> int:
    """Wait until a step of the first epoch was reported; returns the step."""
    until = time.monotonic() + 90
    while time.monotonic() < until:
        try:
            steps = [e["step"] for e in read() if e["event"] == "step"]
        except FileNotFoundError:
            steps = []
        if steps:
            return steps[-1]
        time.sleep(0.02)
    leader.kill()
    raise AssertionError(f"no step within 90 s:\n{leader.communicate()[0]}")


def test_a_damaged_snapshot_loses_only_the_epoch(run_task, events, pictures: Path) -> None:
    def start(steps: int, batch: int) -> subprocess.Popen:
        return run_task("worker-0", {"worker": ["127.0.0.1:1"]}, "run", "classifier", *GIVEN,
                        "--epochs", "2", "--steps-per-epoch", str(steps),
                        "--batch-size", str(batch), CLUSTER_KIT_DATA=pictures)  # fmt: skip

    task = start(200, SLOW)
    within_an_epoch(task, lambda: events("worker-0"))
    task.send_signal(signal.SIGTERM)
    task.communicate(timeout=30)
    snapshot, whole = pictures.parent / "interrupted", pictures.parent / "whole"
    shutil.move(snapshot, whole)
    for damaged in ("state.data-00000-of-00001", "state.index"):
        for left in ("checkpoints", "backup", "model"):
            shutil.rmtree(pictures.parent / left, ignore_errors=True)
        shutil.copytree(whole, snapshot)
        (snapshot / damaged).write_bytes((whole / damaged).read_bytes()[:100])
        task = start(20, QUICK)
        output = task.communicate(timeout=60)[0]
        assert task.returncode == 0, output
        assert re.search(r"error: .+; continuing from the last saved epoch", output), output
        metrics = [e for e in events("worker-0") if e["event"] == "metrics"]
        assert metrics[-1]["updates"] == 40
