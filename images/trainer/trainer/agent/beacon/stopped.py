"""Tasks that were stopped from outside (SIGTERM), which is nobody's failure: a person restarts one,
a node is drained. Each says so itself, in the `end` event of its progress file.
"""

from __future__ import annotations

import os
import re
import stat
import time
from pathlib import Path

from trainer.agent.progress_file import parsed
from trainer.contract.endings import STOPPED

LATELY_S = 30.0
"""A task that ended so long ago may be the one that is missed now."""
TAIL = 64 * 1024
"""Bytes at the end of a progress file in which its last `end` is looked for."""


def stopped_tasks(folder: Path, since: float) -> frozenset[str]:
    """Names of the tasks that were stopped from outside since Unix time `since`."""
    return frozenset(path.stem for path in folder.glob("*.jsonl") if _was_stopped(path, since))


def _was_stopped(path: Path, since: float) -> bool:
    for event in filter(None, map(parsed, _tail(path).splitlines())):
        at = event.get("time")
        was_stopped = event.get("event") == "end" and event.get("reason") == STOPPED
        if was_stopped and isinstance(at, (int, float)) and at >= since:
            return True
    return False


def _tail(path: Path) -> bytes:
    """The end of a regular file, b"" of anything else: programs can write into the folder, too."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        about = os.fstat(file)
        if not stat.S_ISREG(about.st_mode):
            return b""
        return os.pread(file, TAIL, max(0, about.st_size - TAIL))
    except OSError:
        return b""
    finally:
        os.close(file)


class Stops:
    """Of one leader: which of its program's failures are nobody's fault."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._began = time.time()
        self.excuses = 0
        """Attempts that ended so: they are none of the `retries`."""

    def begin_attempt(self) -> None:
        self._began = time.time()

    def lately(self) -> frozenset[str]:
        """The tasks that were stopped from outside just now."""
        return stopped_tasks(self._folder, time.time() - LATELY_S)

    def excused(self, crash: str) -> str:
        """The reason of a crash; it is an excuse if it names a task that was stopped."""
        stopped = stopped_tasks(self._folder, self._began)
        names = [name for name in re.findall(r"[a-z]+-\d+", crash) if name in stopped]
        if not names:
            return crash
        self.excuses += 1
        return f"{crash} ({', '.join(dict.fromkeys(names))} was stopped from outside)"
