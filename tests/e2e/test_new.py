"""Clusters that `new` writes train at once, and continue where they stopped."""

from __future__ import annotations

import json
import re
import signal

import pytest

from tests.e2e.evidence import log, output
from tests.e2e.running import running
from tests.e2e.waiting import wait_for
from tests.kit import Kit


@pytest.mark.parametrize(
    ("style", "leader", "tasks"),
    [("coordinator", "chief-0", 4), ("all-tasks", "worker-0", 2)],
)
def test_a_new_cluster_trains_at_once_and_continues(
    kit: Kit, style: str, leader: str, tasks: int
) -> None:
    made = kit.run("new", kit.name, "--style", style)
    assert made.returncode == 0, made.stderr
    # From the furthest initial weights, 150 steps at 0.1 end 0.004 away; at 0.05 they end 0.2 away.
    done = kit.run("up", kit.name, "--args", "--steps-per-epoch 30 --learning-rate 0.1")
    assert done.returncode == 0, done.stdout + done.stderr
    learned = re.search(r"learned: y = \[\[([\d.]+)\]\]", log(kit, leader))
    assert learned and abs(float(learned[1]) - 6) < 0.1, log(kit, leader)
    outcome = kit.outcome()
    assert outcome["metrics"]["loss"] < 0.1
    assert len(outcome["tasks"]) == tasks
    assert (output(kit) / "checkpoints" / "ckpt-5.index").exists()
    steps = (output(kit) / "progress" / f"{leader}.jsonl").read_text()
    assert '"event": "step", "step": 150' in steps

    if style == "coordinator":
        more = kit.run("up", kit.name, "--resume", "--args", "--epochs 7 --steps-per-epoch 30")
        assert more.returncode == 0, more.stdout + more.stderr
        assert re.findall(r"epoch (\d)/7", more.stderr) == ["6", "7"], "it goes on where it ended"


@pytest.mark.more
@pytest.mark.parametrize(
    ("style", "leader"), [("coordinator", "chief-0"), ("all-tasks", "worker-0")]
)
def test_a_new_cluster_continues_in_the_epoch_in_which_it_was_stopped(
    kit: Kit, style: str, leader: str
) -> None:
    assert kit.run("new", kit.name, "--style", style).returncode == 0
    endless = ("--args", "--epochs 1 --steps-per-epoch 100000 --save-steps 20")
    progress = output(kit) / "progress" / f"{leader}.jsonl"

    def steps() -> list[int]:
        """Those that the program reports; while a first part takes long, the kit counts, too."""
        lines = progress.read_text().splitlines() if progress.exists() else []
        events = [event for event in map(json.loads, lines) if event["event"] == "step"]
        return [event["step"] for event in events if not event.get("counted")]

    with running(kit, "up", kit.name, *endless) as process:
        wait_for("a few backups", lambda: len(steps()) > 3, 120)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    made = steps()
    with running(kit, "up", kit.name, "--resume", *endless) as process:
        wait_for("a step more", lambda: len(steps()) > len(made), 120)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    first = steps()[len(made)]
    assert made[-1] <= first <= made[-1] + 20, (made, first)
