"""`python3 -m trainer stacks`, and what is kept of a task that hangs: where each thread is."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from trainer.injected import stacks
from trainer.task import Task

KEPT = "stacks"
"""The directory below the output."""


def now(task: Task) -> str:
    """The stacks of the task's program, or of its server; a sentence if there are none."""
    try:
        file = Path(stacks.place(task.name).read_text())
    except OSError:
        return "nothing runs yet\n"
    return stacks.ask(file) or "no Python program answers: it has ended, or is not Python\n"


def arm(task: Task) -> None:
    """Let this process show its own stacks: a server's, in which no program runs."""
    file = stacks.place(task.name)
    written = file.with_name(f"{file.name}-{os.getpid()}")
    stacks.arm(str(written))
    with contextlib.suppress(OSError):
        file.write_text(str(written))


def keep(task: Task, why: str, more: str = "") -> None:
    """Append the stacks to `/output/stacks/<task>.txt`; nothing if they cannot be written."""
    text = f"{time.strftime('%H:%M:%S')} {task.name}: {why}\n{more}{now(task)}\n"
    with contextlib.suppress(OSError):
        folder = task.output / KEPT
        folder.mkdir(exist_ok=True)
        with (folder / f"{task.name}.txt").open("a") as kept:
            kept.write(text)


def show(task: Task) -> int:
    """Print them; the exit code."""
    print(now(task), end="", flush=True)
    return 0
