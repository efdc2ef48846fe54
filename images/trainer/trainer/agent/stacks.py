"""Stacks of all threads: for `python3 -m trainer stacks`, and saved for a task that hangs."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from trainer.agent.injected import stacks
from trainer.agent.task import Task

PATIENCE_S = 2.0
LOOK_S = 0.02
KEPT = "stacks"
"""The directory below the output."""


def stack_file(task: str) -> Path:
    """The file in which a task's supervisor writes the path of its program's stacks file, or its
    own."""
    return Path(os.environ.get("TMPDIR") or "/tmp") / f"cluster-kit-stacks-{task}"


def ask(file: Path, patience_s: float = PATIENCE_S) -> str:
    """The stacks of the process that armed `file`; "" if no such process exists or answers."""
    try:
        pid = int(Path(f"{file}.pid").read_text())
        before = file.stat().st_size
        os.kill(pid, stacks.SIGNAL)
    except (OSError, ValueError):
        return ""
    until, size = time.monotonic() + patience_s, before
    while time.monotonic() < until:
        time.sleep(LOOK_S)
        last, size = size, file.stat().st_size
        if size > before and size == last:
            break
    with file.open(errors="replace") as written:
        written.seek(before)
        return written.read()


def now(task: Task) -> str:
    """The stacks of the task's program or server; a sentence if there are none."""
    try:
        file = Path(stack_file(task.name).read_text())
    except OSError:
        return "nothing runs yet\n"
    return ask(file) or "no Python program answers: it has ended, or is not Python\n"


def arm(task: Task) -> None:
    """Let this process show its own stacks; used by a server, in which no program runs."""
    file = stack_file(task.name)
    written = file.with_name(f"{file.name}-{os.getpid()}")
    stacks.arm(str(written))
    with contextlib.suppress(OSError):
        file.write_text(str(written))


def keep(task: Task, why: str, more: str = "") -> None:
    """Append the stacks to `/output/stacks/<task>.txt`; errors of writing are ignored."""
    text = f"{time.strftime('%H:%M:%S')} {task.name}: {why}\n{more}{now(task)}\n"
    with contextlib.suppress(OSError):
        folder = task.output / KEPT
        folder.mkdir(exist_ok=True)
        with (folder / f"{task.name}.txt").open("a") as kept:
            kept.write(text)


def show(task: Task) -> int:
    """Print the stacks; return the exit code."""
    print(now(task), end="", flush=True)
    return 0
