"""An evaluator that is started again after the job's end: no leader is there to tell it so."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from trainer.agent.beacon.client import BeaconClient, JobEnded
from trainer.agent.progress_file import last_event
from trainer.agent.task import Task
from trainer.contract.times import LATECOMER_S

LOOK_S = 0.5


def watch(
    task: Task,
    leader: BeaconClient,
    then: Callable[[JobEnded], None],
    patience_s: float = LATECOMER_S,
) -> None:
    """Call `then` if the leader does not come, and its progress file says that it has ended.

    Returns when the leader has come, or at the start deadline.
    """
    began = time.monotonic()
    while not leader.connected and time.monotonic() - began < task.start_deadline_s:
        code = exit_code(task.progress_file.with_name(f"{task.leader}.jsonl"))
        if code is not None and time.monotonic() - began > patience_s:
            then(JobEnded(code))
            return
        time.sleep(LOOK_S)


def exit_code(progress: Path) -> int | None:
    """The code of the `end` that is the file's last line, None if there is none."""
    event = last_event(progress)
    code = event.get("exit_code")
    return code if event.get("event") == "end" and isinstance(code, int) else None
