"""Ctrl-C within an epoch, in containers: `--resume` continues at the step where the run stopped.

The other ways of training are stopped in tests/trainer, without containers.
"""

from __future__ import annotations

import re
import signal

import pytest

from tests.e2e.evidence import log, output
from tests.e2e.running import running
from tests.e2e.waiting import wait_for
from tests.kit import Kit

STEPS = 150
ARGUMENTS = f"--steps-per-epoch {STEPS} --batch-size 8 --learning-rates 0:1e-3"
LONG = 100
"""Epochs of the run that is stopped: no machine finishes before that."""
WAYS = {
    "async": ("smoke", "", 4),
    "graph": ("smoke", "--strategy graph --save-secs 600", 4),
}
"""Manifest, arguments, and the maximum number of other tasks' steps that are in transit at the
stop."""


@pytest.mark.more
@pytest.mark.parametrize("way", WAYS)
def test_no_step_is_lost(kit: Kit, way: str) -> None:
    manifest, more, under_way = WAYS[way]
    command = ["up", manifest, "--name", kit.name, "--set", "evaluator=0"]
    if way == "graph":
        command += ["--set", "style=all-tasks"]
    with running(kit, *command, f"--args={ARGUMENTS} {more} --epochs {LONG}") as process:
        wait_for("a step", lambda: stepped(kit, "chief-0"), 120)
        process.send_signal(signal.SIGINT)
        printed, _ = process.communicate(timeout=60)
    assert process.returncode == 130, printed
    stopped = r"stopped by SIGTERM; saved (?:step |model\.ckpt-)(\d+)"
    saved = re.search(stopped, log(kit, "chief-0"))
    assert saved, printed

    epochs = int(saved[1]) // STEPS + 2
    done = kit.run(*command, f"--args={ARGUMENTS} {more} --epochs {epochs}", "--resume")
    assert done.returncode == 0, done.stdout + done.stderr
    resumed = re.search(r"continuing at global step (\d+)", done.stderr)
    assert resumed, done.stderr
    assert abs(int(resumed[1]) - int(saved[1])) <= under_way
    updates = kit.outcome()["metrics"]["updates"]
    assert epochs * STEPS <= updates <= epochs * STEPS + under_way


def stepped(kit: Kit, task: str) -> bool:
    file = output(kit) / "progress" / f"{task}.jsonl"
    return file.exists() and '"step"' in file.read_text()
