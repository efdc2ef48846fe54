"""What a person has asked of a cluster that is up: restart, stop, down.

It stands in the run's directory, which tasks cannot write. So whoever watches the cluster, or comes
to it later, does not take it for a crash.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cluster_kit.platforms.engine import Container

FILE = "requests.jsonl"
"""In the directory of a run, beside its output."""
RESTART, STOP, DOWN = "restart", "stop", "down"
END, KILL, FREEZE, THAW = "end", "kill", "freeze", "thaw"
"""Of one task, from a page."""
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


def write(run: Path, what: str, tasks: Sequence[str], now: float) -> None:
    """Add to the requests of the run in this directory; raises OSError."""
    line = json.dumps({"time": now, "what": what, "tasks": list(tasks)})
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    file = os.open(run / FILE, flags, 0o644)
    try:
        os.write(file, line.encode() + b"\n")
        if os.geteuid() == 0:  # in another user's run it is that user's file
            about = run.stat()
            with contextlib.suppress(OSError):
                os.fchown(file, about.st_uid, about.st_gid)
    finally:
        os.close(file)


def read(run: Path) -> list[Asked]:
    """All requests about the run in this directory, oldest first; [] if there are none."""
    try:
        lines = (run / FILE).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        with contextlib.suppress(ValueError, LookupError, TypeError):  # cut off by a full disk
            fields = json.loads(line)
            found.append(Asked(fields["time"], fields["what"], tuple(fields["tasks"])))
    return found


def of_containers(containers: Sequence[Container]) -> list[Asked]:
    """The requests since these containers were created, oldest first."""
    if not containers or not containers[0].output:
        return []
    since = min(container.created for container in containers)
    return [one for one in read(Path(containers[0].output).parent) if one.time >= since]


def last(requests: Sequence[Asked], task: str) -> Asked | None:
    """What was last asked about a task, None if nothing was."""
    return next((one for one in reversed(requests) if task in one.tasks), None)
