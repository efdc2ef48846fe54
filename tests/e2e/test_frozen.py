"""Frozen tasks and hanging jobs are reported, and continue. See also test_drill.py."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any

import docker
import pytest

from tests.e2e.evidence import events, output, restarts
from tests.e2e.running import read_until, running
from tests.e2e.test_plain_compose import compose
from tests.e2e.waiting import wait_for
from tests.kit import Kit, mine

SOON = ("--set", "deadline.silent=4")
HANGS = """
import json, os, threading, time
def waits_for_ever():
    threading.Event().wait()
progress = open(os.environ["CLUSTER_KIT_PROGRESS"], "a", buffering=1)
again = os.path.exists("been-here")
open("been-here", "w").close()
for step in range(5):
    event = {"time": time.time(), "event": "step", "step": step}
    print(json.dumps(event), file=progress)
    time.sleep(0.3)
if not again:
    waits_for_ever()
"""
LONG = """
import json, os, time
progress = open(os.environ["CLUSTER_KIT_PROGRESS"], "a", buffering=1)
for step in range(600):
    print(json.dumps({"time": time.time(), "event": "step", "step": step}), file=progress)
    time.sleep(0.1)
"""


def text(folder: Path, task: str) -> str:
    """Returns what a task has reported so far."""
    file = folder / "output" / "progress" / f"{task}.jsonl"
    return file.read_text() if file.exists() else ""


def container(client: docker.DockerClient, kit: Kit, task: str) -> Any:
    found = (c for c in mine(client, kit.name)[0] if c.attrs["Config"]["Hostname"] == task)
    return next(found)


def freeze(task: Any) -> None:
    """Pause a container; runc fails if the task starts threads at that moment."""
    for _ in range(4):
        with contextlib.suppress(docker.errors.APIError):
            task.pause()
            return
        time.sleep(0.5)
    task.pause()


@pytest.mark.more
def test_an_evaluator_that_is_frozen_after_the_training_still_scores(
    kit: Kit, client: docker.DockerClient
) -> None:
    """There is no leader any more that could miss it, or inform it of the end."""
    short = ("--args=--epochs 2 --steps-per-epoch 40", *SOON)
    with running(kit, "up", "smoke", "--name", kit.name, *short) as process:
        # Before the evaluator writes its end: it may finish within a second.
        read_until(process, "epoch 2/2")
        freeze(container(client, kit, "evaluator-0"))
        printed, _ = process.communicate(timeout=120)
    assert process.returncode == 0, printed
    assert restarts(kit)["evaluator-0"] == 1
    assert kit.outcome()["notes"][0].startswith("evaluator-0 has been silent for ")


def test_with_compose_alone_a_frozen_task_ends_the_job_and_is_named(
    kit: Kit, client: docker.DockerClient
) -> None:
    """The program, which does not import TensorFlow, would run for a minute."""
    long = ("--program", kit.program(LONG), "--set", "evaluator=0", *SOON)
    assert kit.run("render", "smoke", "--name", kit.name, *long).returncode == 0
    folder = kit.root / "compose" / kit.name
    assert compose(folder, "up", "--detach").returncode == 0
    wait_for("the worker's server", lambda: "ready" in text(folder, "worker-0"), 90)
    heard = text(folder, "chief-0").count('"step":') + 30  # three seconds, three heartbeats
    wait_for("signs of life", lambda: text(folder, "chief-0").count('"step":') >= heard)
    freeze(container(client, kit, "worker-0"))

    def ended() -> dict[str, Any] | None:
        state: dict[str, Any] = container(client, kit, "chief-0").attrs["State"]
        return state if state["Status"] == "exited" else None

    assert wait_for("the end", ended, 60)["ExitCode"] == 6
    end = text(folder, "chief-0").splitlines()[-1]
    assert '"reason": "silent"' in end and '"tasks": ["worker-0"]' in end, end
    wait_for("the ps's end", lambda: container(client, kit, "ps-0").status == "exited", 20)
    compose(folder, "down")


def test_a_hanging_job_is_restarted_and_its_stacks_are_kept(kit: Kit) -> None:
    path = kit.program(HANGS)
    done = kit.run("up", "smoke", "--name", kit.name, "--program", path, "--set", "evaluator=0",
                   "--set", "deadline.stall=4")  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (retry,) = events(kit, "chief-0", "retry")
    assert retry["reason"].startswith("no progress for ")
    kept = (output(kit) / "stacks" / "chief-0.txt").read_text()
    assert "in waits_for_ever" in kept
    assert "ps-0 at " in kept and " answers" in kept
    assert "worker-0: the job makes no progress" in (
        (output(kit) / "stacks" / "worker-0.txt").read_text()
    )
