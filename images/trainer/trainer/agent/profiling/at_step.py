"""The trace that a manifest asks for: the leader's supervisor takes it when a step is reported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from trainer.agent.errors import ContractError
from trainer.agent.progress_file import Progress, Reports
from trainer.agent.start_anew import trainer_command
from trainer.agent.task import Task
from trainer.contract.events import Step

VARIABLE = "CLUSTER_KIT_PROFILE"
LOOK_S = 0.2
PATIENCE_S = 300.0
Command = Callable[[float], "subprocess.CompletedProcess[str]"]


def begin(task: Task, progress: Progress, environment: Mapping[str, str] = os.environ) -> None:
    """Take the trace that CLUSTER_KIT_PROFILE asks for, in the background; none if it is unset.

    Raises:
        ContractError: the variable is wrong.
    """
    request = read(environment.get(VARIABLE, ""))
    if request:
        reports = Reports(task.progress_file.parent)
        threading.Thread(
            target=watch, args=(task, progress, reports, *request), name="profile", daemon=True
        ).start()


def read(text: str) -> tuple[int, float] | None:
    """(step, seconds) of `{"at_step": 100, "seconds": 2}`; None of an empty text."""
    if not text:
        return None
    try:
        content = json.loads(text)
        return int(content["at_step"]), float(content["seconds"])
    except (ValueError, TypeError, KeyError) as problem:
        raise ContractError(f"{VARIABLE} = {text[:200]!r}: {problem!r}") from problem


def watch(task: Task, progress: Progress, reports: Reports, at_step: int, seconds: float) -> None:
    """Wait until a task reports the step, take a trace, and report the result."""
    while not reached(reports, at_step):
        time.sleep(LOOK_S)
    take(task, progress, seconds)


def reached(reports: Reports, at_step: int) -> bool:
    """Whether one of the new reports has this step, or one beyond it."""
    steps = [event.step for _, event in reports.new() if isinstance(event, Step)]
    return any(step is not None and step >= at_step for step in steps)


def take(task: Task, progress: Progress, seconds: float, run: Command | None = None) -> None:
    """Trace all tasks, in another process."""
    done = (run or command)(seconds)
    facts = facts_of(done.stdout)
    if facts is None:
        message = (done.stderr.strip().splitlines() or ["it was ended"])[-1]
        progress.write("profiled", folder="", missing=[], message=message)
        print(f"{task.name}: no profile: {message}", file=sys.stderr, flush=True)
        return
    missing = sorted(facts["missing"])
    progress.write("profiled", folder=facts["folder"], missing=missing, message="")
    without = f", without {', '.join(missing)}" if missing else ""
    count = len(facts["tasks"])
    traced = f"{count} task{'' if count == 1 else 's'}"
    print(f"{task.name}: traced {seconds:g} s of {traced}{without}: "
          f"{facts['folder']}/{facts['trace']}", file=sys.stderr, flush=True)  # fmt: skip


def command(seconds: float) -> subprocess.CompletedProcess[str]:
    """`python3 -m trainer profile SECONDS`."""
    return subprocess.run(
        trainer_command(["profile", f"{seconds:g}"]), cwd="/",
        capture_output=True, text=True, timeout=seconds + PATIENCE_S, check=False,
    )  # fmt: skip


def facts_of(said: str) -> dict[str, Any] | None:
    """The facts that the command has printed, None if it has not."""
    try:
        facts = json.loads((said.splitlines() or [""])[-1])
    except ValueError:
        return None
    return facts if isinstance(facts, dict) else None
