"""Ctrl-C within an epoch, in containers: `--resume` goes on at the step where it stopped."""

from __future__ import annotations

import re
import signal

import pytest

from tests.e2e.waiting import wait_for
from tests.kit import Kit

STEPS = 300
ARGUMENTS = f"--epochs 2 --steps-per-epoch {STEPS} --batch-size 8 --learning-rates 0:1e-3"
WAYS = {
    "async": ("smoke", ""),
    "sync": ("smoke", "--update sync"),
    "all-reduce": ("all-reduce", ""),
    "graph": ("smoke", "--strategy graph --save-secs 600"),
}


@pytest.mark.parametrize("way", WAYS)
def test_no_step_is_lost(kit: Kit, way: str) -> None:
    manifest, more = WAYS[way]
    leader = "worker-0" if manifest == "all-reduce" else "chief-0"
    command = ["up", manifest, "--name", kit.name, f"--args={ARGUMENTS} {more}"]
    if way == "graph":
        command += ["--set", "style=all-tasks"]
    process = kit.start(*command, "--set", "evaluator=0")
    try:
        wait_for("a step", lambda: '"step"' in progress(kit, leader), 120)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, said
    logs = kit.root / "runs" / kit.name / "latest" / "logs"
    saved = re.search(
        r"stopped by SIGTERM; saved (?:step |model\.ckpt-)(\d+)",
        (logs / f"{leader}.log").read_text(),
    )
    assert saved, said
    done = kit.run(*command, "--set", "evaluator=0", "--resume")
    assert done.returncode == 0, done.stdout + done.stderr
    resumed = re.search(r"going on at global step (\d+)", done.stderr)
    assert resumed, done.stderr
    under_way = 0 if way in ("sync", "all-reduce") else 4
    assert abs(int(resumed[1]) - int(saved[1])) <= under_way
    updates = kit.outcome()["metrics"]["updates"]
    assert 2 * STEPS <= updates <= 2 * STEPS + under_way


def progress(kit: Kit, task: str) -> str:
    file = kit.root / "runs" / kit.name / "latest" / "output" / "progress" / f"{task}.jsonl"
    return file.read_text() if file.exists() else ""
