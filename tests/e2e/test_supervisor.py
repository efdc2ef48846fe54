"""A program for TensorFlow 1 with `tf.train.Supervisor`, unchanged, in real containers."""

from __future__ import annotations

import re

import pytest

from tests.e2e.evidence import codes, log, output
from tests.kit import Kit
from tests.make import ROOT

PROGRAM = ROOT / "tests" / "trainer" / "period" / "linear_supervisor.py"
FLAGS = (
    "--job_name={{ role }} --task_index={{ index }} --ps_hosts={{ ps_hosts }}"
    " --worker_hosts={{ worker_hosts }} --log_dir={{ output }}/train"
)
FIRST = 800
"""A single worker takes 8 s for it; the other may join a second later."""


def command(kit: Kit, last_step: int, *more: str) -> list[str]:
    return [
        *("up", "smoke", "--name", kit.name, "--program", str(PROGRAM), "--tf1"),
        *("--chief", "0", "--workers", "2", "--set", "evaluator=0", "--set", "ps_runs=program"),
        *("--args", f"{FLAGS} --last_step={last_step}", *more),
    ]


@pytest.mark.more
def test_a_supervisor_trains_on_every_worker_ends_and_resumes(kit: Kit) -> None:
    done = kit.run(*command(kit, FIRST))
    printed = done.stdout + done.stderr
    assert done.returncode == 0, printed
    last = re.search(r"task:0 step (\d+) loss (\S+) w (\S+) b (\S+)", log(kit, "worker-0"))
    assert last and FIRST <= int(last[1]) <= FIRST + 2, printed
    assert abs(float(last[3]) - 2) < 0.2 and abs(float(last[4]) + 1) < 0.2
    assert re.search(r"task:1 step 80[0-2] ", log(kit, "worker-1"))
    assert codes(kit) == {"worker-0": 0, "worker-1": 0, "ps-0": 0}
    train = output(kit) / "train"
    assert len(list(train.glob("model.ckpt-*.index"))) == 1
    assert list(train.glob("events.out.tfevents.*.worker-0"))
    assert not list(train.glob("events.out.tfevents.*.worker-1"))
    again = kit.run(*command(kit, FIRST + 100, "--resume"))
    assert again.returncode == 0, again.stdout + again.stderr
    workers = ("worker-0", "worker-1")
    begun = [re.findall(r"begins at step (\d+)", log(kit, worker)) for worker in workers]
    first = min(int(steps[-1]) for steps in begun)
    # The step at which the run before ended, plus what the other worker may have done by then.
    assert FIRST <= first < FIRST + 100, f"one of them begins with the checkpoint: {begun}"
    assert re.search(r"task:0 step 90[0-2] ", log(kit, "worker-0"))
