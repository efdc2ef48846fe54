"""Restarts that a person has asked for: the host tells of them in `host.jsonl` (contract.toml)."""

from __future__ import annotations

import re
import time
from pathlib import Path

from trainer.events import parsed

FILE, EVENT, RESTART = "host.jsonl", "asked", "restart"
SLACK_S = 30.0
"""From the host's word to the task's end: a program may take 10 s to save."""


def restarted(folder: Path, since: float) -> frozenset[str]:
    """Names of the tasks whose restart was asked for since so many Unix seconds, less SLACK_S."""
    try:
        lines = (folder / FILE).read_bytes().splitlines()
    except OSError:
        return frozenset()
    names: set[str] = set()
    for event in filter(None, map(parsed, lines)):
        at, tasks = event.get("time"), event.get("tasks")
        if event.get("event") != EVENT or event.get("what") != RESTART:
            continue
        if isinstance(at, int | float) and at >= since - SLACK_S and isinstance(tasks, list):
            names |= set(map(str, tasks))
    return frozenset(names)


class Requests:
    """Of one leader: which of its program's failures are nobody's fault."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._began = time.time()
        self.excuses = 0
        """Attempts that ended so: they are none of the `retries`."""

    def begin_attempt(self) -> None:
        self._began = time.time()

    def lately(self) -> frozenset[str]:
        """The tasks that somebody is restarting just now."""
        return restarted(self._folder, time.time())

    def excused(self, crash: str) -> str:
        """The reason of a crash; it is an excuse if it names a task that somebody restarted."""
        asked = restarted(self._folder, self._began)
        names = [name for name in re.findall(r"[a-z]+-\d+", crash) if name in asked]
        if not names:
            return crash
        self.excuses += 1
        return f"{crash} (somebody has asked for the restart of {', '.join(dict.fromkeys(names))})"
