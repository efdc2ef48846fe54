"""What a person has asked of a cluster that is up: restart, stop, down.

It stands beside what the tasks report, in a file that the host alone writes: so whoever watches the
cluster, or comes to it later, does not take it for a crash.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cluster_kit.observe.progress import SUFFIX, Entry

EVENT, HOST = "asked", "host"
RESTART, STOP, DOWN = "restart", "stop", "down"
ENDS = (RESTART, STOP)
"""After these a task has ended only for a while."""


@dataclass(frozen=True)
class Asked:
    """`what` was asked about these tasks; `time` in Unix seconds."""

    time: float
    what: str
    tasks: tuple[str, ...]

    @property
    def at(self) -> str:
        """The host's time of day."""
        return f"{datetime.fromtimestamp(self.time):%H:%M:%S}"


def write(output: str, what: str, tasks: Sequence[str]) -> None:
    """Add to the file of a cluster whose containers have this /output; raises OSError."""
    entry = {"time": time.time(), "event": EVENT, "what": what, "tasks": list(tasks)}
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    file = os.open(Path(output) / "progress" / f"{HOST}{SUFFIX}", flags, 0o644)
    try:
        os.write(file, json.dumps(entry).encode() + b"\n")
    finally:
        os.close(file)


def all_of(entries: Iterable[Entry]) -> list[Asked]:
    """All that was asked, oldest first."""
    return [
        Asked(entry.time, str(entry.fields.get("what")), tuple(map(str, tasks)))
        for entry in entries
        if (entry.task, entry.event) == (HOST, EVENT)
        and isinstance(tasks := entry.fields.get("tasks"), list)
    ]


def last(entries: Iterable[Entry], task: str) -> Asked | None:
    """What was last asked about a task, None if nothing was."""
    return next((one for one in reversed(all_of(entries)) if task in one.tasks), None)
