"""Watches a job's progress files, its output and its use of CPU and network."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from trainer.agent import outcome, stacks
from trainer.agent.beacon.server import BeaconServer
from trainer.agent.events import Reports
from trainer.agent.outcome import Outcome
from trainer.agent.servers.probe import Prober
from trainer.agent.supervisor.progress.progression import Progression
from trainer.agent.supervisor.progress.waits import Waits
from trainer.agent.task import Task
from trainer.agent.usage import Usage
from trainer.contract import endings

LOOK_S = 1.0
ANSWER_S = 2.0
FILES_EVERY = 5
"""Looks at the output's files in every so manieth look: there may be many."""
MOST_FILES = 5000
NOT_LOOKED_AT = ("progress", "stacks")


@dataclass(frozen=True)
class Stalled:
    """An attempt has made no progress for so many seconds."""

    attempt: int
    seconds: float


def watch(
    task: Task,
    attempt: int,
    usage: Callable[[], Mapping[str, Usage]],
    waits: Waits,
    then: Callable[[Stalled], None],
    over: threading.Event,
) -> None:
    """Call `then` once if the attempt makes no progress; returns after that, or with `over`.

    `waits` is told what is reported.
    """
    progression = Progression(task.stall_s, time.monotonic())
    reports = Reports(task.progress_file.parent)
    looks, files = 0, written(task.output)
    while not over.wait(LOOK_S):
        looks += 1
        now = time.monotonic()
        progression.look(now)
        for name, event in reports.new():
            progression.reported(name, event)
            waits.reported(name, event, now)
        waits.look(now)
        if looks % FILES_EVERY == 0:
            progression.used(now, usage())
            before, files = files, written(task.output)
            if files != before:
                progression.wrote()
        if (seconds := progression.standing_s()) and task.stall_s != 0:
            then(Stalled(attempt, seconds))
            return


def written(folder: Path) -> frozenset[tuple[str, int, int]]:
    """(path, size, time of its change) of the first MOST_FILES files, to be compared only.

    The newest time would not do: somebody may set the clock back.
    """
    found: set[tuple[str, int, int]] = set()
    for root, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in NOT_LOOKED_AT]
        for name in files:
            path = Path(root) / name
            with contextlib.suppress(OSError):
                status = path.stat()
                found.add((str(path), status.st_size, status.st_mtime_ns))
        if len(found) > MOST_FILES:
            break
    return frozenset(found)


def ended(reason: str, tasks: tuple[str, ...], *, again: bool) -> Outcome:
    """The outcome of a job that makes no progress."""
    message = f"{reason}{' after it was started again' if again else ''}"
    return outcome.because(
        endings.STALL,
        f"{message}; where each task stands is in {stacks.KEPT}/ of the output",
        tasks,
    )


def keep_stacks(task: Task, stalled: Stalled, followers: BeaconServer | None) -> None:
    """Everybody's, and whether each server answers, before anything is ended."""
    if followers:
        followers.ask_for_stacks()
    answers = ""
    if task.servers:
        with Prober(task.servers) as prober:
            answers = "".join(f"{answer}\n" for answer in prober.ask(ANSWER_S))
    stacks.keep(task, f"no progress for {stalled.seconds:.0f} s", answers)
