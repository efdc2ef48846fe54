"""Graph mode in real containers: it ends by itself, and goes on after a task was killed."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import docker
import pytest

from tests.e2e.test_recovery import pid_of
from tests.e2e.waiting import wait_for
from tests.kit import Kit

SHORT = "--steps 800 --learning-rate 0.02 --log-steps 100 --save-secs 1 --pause-ms 5"
needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="killing a container's process takes root"
)


def command(kit: Kit, arguments: str = "", *more: str) -> list[str]:
    return ["up", "linear-regression", "--name", kit.name, f"--args={SHORT} {arguments}", *more]


def saved_step(kit: Kit) -> int:
    """The global step of the newest automatic checkpoint, 0 while there is none."""
    folder = kit.root / "runs" / kit.name / "latest" / "output" / "checkpoints"
    names = (path.name for path in folder.glob("model.ckpt-*.index"))
    return max((int(name.split("-")[1].split(".")[0]) for name in names), default=0)


def test_it_ends_with_the_line_and_each_workers_share(kit: Kit) -> None:
    done = kit.run(*command(kit))
    assert done.returncode == 0, done.stdout + done.stderr
    outcome = kit.outcome()
    metrics = outcome["metrics"]
    assert abs(metrics["w"] - 2) <= 0.02
    assert abs(metrics["b"] + 1) <= 0.02
    assert metrics["steps_of_worker-0"] + metrics["steps_of_worker-1"] == metrics["updates"]
    assert 800 <= metrics["updates"] <= 801
    assert min(metrics["steps_of_worker-0"], metrics["steps_of_worker-1"]) > 100
    assert {task["name"]: task["exit_code"] for task in outcome["tasks"]} == {
        "worker-0": 0, "worker-1": 0, "ps-0": 0,
    }  # fmt: skip
    run = kit.root / "runs" / kit.name / "latest"
    assert re.search(
        r"step \d+  loss [\d.]+  w [\d.]+  b -[\d.]+", (run / "logs/worker-1.log").read_text()
    )
    again = kit.run(*command(kit, "--steps 900", "--resume"))
    assert again.returncode == 0, again.stdout + again.stderr
    assert f"going on at global step {metrics['updates']}" in again.stderr
    assert kit.outcome()["metrics"]["updates"] >= 900


@needs_root
@pytest.mark.parametrize(
    ("victim", "update"),
    [("worker-0", "async"), ("worker-0", "sync"), ("worker-1", "sync"), ("ps-0", "sync")],
)
def test_a_killed_task_comes_back_and_the_job_finishes(
    kit: Kit, client: docker.DockerClient, victim: str, update: str
) -> None:
    process = kit.start(*command(kit, f"--update {update}"))
    try:
        before = wait_for("a checkpoint", lambda: saved_step(kit), 120)
        os.kill(pid_of(client, kit, victim), signal.SIGKILL)
        said, _ = process.communicate(timeout=180)
    finally:
        process.kill()
    assert process.returncode == 0, said
    outcome = kit.outcome()
    restarts = {task["name"]: task["restarts"] for task in outcome["tasks"]}
    assert restarts[victim] >= 1, restarts
    assert outcome["metrics"]["w_error"] <= 0.02
    assert 800 <= outcome["metrics"]["updates"] <= 801
    resumed = re.findall(r"going on at global step (\d+)", said)
    if victim == "worker-1":
        assert not resumed, "the chief and the ps had lost nothing"
    else:
        assert before <= int(resumed[-1]) < 800


def test_a_stopped_job_has_saved_and_goes_on(kit: Kit) -> None:
    process = kit.start(*command(kit, "--save-secs 600 --steps 100000"))
    try:
        assert process.stdout is not None
        next(line for line in process.stdout if " | step " in line)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    stopped_at = saved_step(kit)
    assert stopped_at > 0
    done = kit.run(*command(kit, f"--steps {stopped_at + 100} --tolerance 2", "--resume"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"going on at global step {stopped_at}" in done.stderr


def test_a_save_by_hand_stays_beside_the_automatic_ones(kit: Kit) -> None:
    process = kit.start(*command(kit))
    output = kit.root / "runs" / kit.name / "latest" / "output"
    try:
        assert process.stdout is not None
        next(line for line in process.stdout if " | step " in line)
        (output / "save-now").touch()
        said, _ = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 0, said
    assert "saved by hand: manual.ckpt-" in said
    kept = [Path(name).name for name in (output / "checkpoints").glob("*.index")]
    assert sorted(name.split("-")[0] for name in kept) == ["manual.ckpt", "model.ckpt"]


def test_a_loss_that_is_no_number_is_the_leaders_last_word(kit: Kit) -> None:
    done = kit.run(*command(kit, "--learning-rate 1e30"))
    assert done.returncode == 5
    outcome = json.loads((kit.root / "runs" / kit.name / "latest" / "outcome.json").read_text())
    assert "is no number" in outcome["message"]
