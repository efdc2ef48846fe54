"""Checks whether the output directory can still be written, and names the outcome if it cannot."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from trainer.agent import outcome
from trainer.agent.atomic import write_new
from trainer.agent.outcome import Outcome
from trainer.agent.task import Task
from trainer.contract import endings

FULL = (errno.ENOSPC, errno.EDQUOT)
FULL_WORDS = ("No space left on device", "Disk quota exceeded")
LOOK_S = 1.0
LOOKS = 3
"""Number of checks: a disk may be full, or a mount missing, for a moment only."""
PROBE_BYTES = 4096
TMP = Path("/tmp")


def trouble(task: Task) -> Outcome | None:
    """The reason why the task's output cannot be written; None if it can.

    The progress directory is created again if only it is missing.
    """
    folder = task.progress_file.parent
    # An unpredictable name: a link at a known name would be followed.
    probe = folder / f".{task.name}.{os.urandom(8).hex()}.room"
    try:
        folder.mkdir(exist_ok=True)
        try:
            write_new(probe, bytes(PROBE_BYTES))
        finally:
            with contextlib.suppress(OSError):
                probe.unlink()
    except OSError as problem:
        return of(task, problem)
    return None


def of(task: Task, problem: OSError) -> Outcome:
    """The outcome of a task that could not write its output because of this error."""
    if problem.errno in FULL:
        return outcome.because(
            endings.DISK_FULL, f"the disk of {task.output} is full ({free(task.output)})"
        )
    return outcome.because(
        endings.OUTPUT_LOST, f"{task.output} cannot be written any more: {problem.strerror}"
    )


def free(folder: Path) -> str:
    """The text `0 of 64 MB free` for the disk of a folder."""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return "how much is free is not known"
    free_bytes, whole = disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize
    return f"{free_bytes // 1_000_000} of {whole // 1_000_000} MB free"


def has_no_room(folder: Path) -> bool:
    """Whether the disk of a folder is full; False if it is unknown, or has no size."""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return False
    return disk.f_blocks > 0 and disk.f_bavail * disk.f_frsize < PROBE_BYTES


def watch(task: Task, then: Callable[[Outcome], None], over: threading.Event) -> None:
    """Call `then` once if nothing can be written for LOOKS seconds; returns after that, or when
    `over` is set."""
    failed = 0
    while not over.wait(LOOK_S):
        problem = trouble(task)
        failed = failed + 1 if problem else 0
        if problem and failed >= LOOKS:
            then(problem)
            return


def instead(task: Task, ended: Outcome) -> Outcome:
    """The outcome of a task that may have failed because it could not write its output.

    A program that ended successfully had no error, even if the disk is full by now.
    """
    if ended.reason not in (endings.FINISHED, endings.FAILED):
        return ended
    problem = trouble(task)
    if ended.reason == endings.FINISHED:
        return problem if problem and problem.reason == endings.OUTPUT_LOST else ended
    if problem is None and has_no_room(TMP):
        return ended.because_of(f"{endings.TMP_FULL}: {free(TMP)}")
    if problem is None and any(words in ended.message for words in FULL_WORDS):
        problem = of(task, OSError(errno.ENOSPC, "")) if "/tmp/" not in ended.message else None
    return replace(problem, message=f"{problem.message}: {ended.headline}") if problem else ended
