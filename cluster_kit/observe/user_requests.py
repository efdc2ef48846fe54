"""Records what a user requested for a running cluster: restart, stop, down.

The record is a file in the run's directory, which tasks cannot write. A process that watches the
cluster, now or later, reads it and does not mistake the request for a crash.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cluster_kit.platforms.engine import Container

FILE = "requests.jsonl"
"""The name of the file in the run's directory."""
RESTART, STOP, DOWN = "restart", "stop", "down"
LEAVE = "leave"
"""The Python block that started the cluster ends, which removes it as `down` does."""
END, KILL, FREEZE, THAW = "end", "kill", "freeze", "thaw"
"""Requests for one task, from the live page."""
AWAY = "away"
"""A drill takes a task's machine away; it comes back later."""
ENDS = (RESTART, STOP, AWAY)
"""Requests after which a task starts again."""


@dataclass(frozen=True)
class Asked:
    """A request, `what`, for these tasks, made at `time` in Unix seconds, from the page or not."""

    time: float
    what: str
    tasks: tuple[str, ...]
    from_page: bool = False

    @property
    def at(self) -> str:
        """The time of the request, as the host's time of day."""
        return f"{datetime.fromtimestamp(self.time):%H:%M:%S}"


def write(
    run: Path, what: str, tasks: Sequence[str], now: float, *, from_page: bool = False
) -> None:
    """Add a request to those of the run in this directory; raises OSError."""
    line = json.dumps({"time": now, "what": what, "tasks": list(tasks), "from_page": from_page})
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    file = os.open(run / FILE, flags, 0o644)
    try:
        os.write(file, line.encode() + b"\n")
        if os.geteuid() == 0:  # in another user's run, the file belongs to that user
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
    requests = []
    for line in lines:
        with contextlib.suppress(ValueError, LookupError, TypeError):  # the disk was full
            fields = json.loads(line)
            tasks, from_page = tuple(fields["tasks"]), fields.get("from_page") is True
            requests.append(Asked(fields["time"], fields["what"], tasks, from_page))
    return requests


def of_containers(containers: Sequence[Container]) -> list[Asked]:
    """The requests since these containers were created, oldest first."""
    if not containers or not containers[0].output:
        return []
    since = min(container.created for container in containers)
    return [one for one in read(Path(containers[0].output).parent) if one.time >= since]


def last(requests: Sequence[Asked], task: str, since: float = -math.inf) -> Asked | None:
    """The last request for a task; None if there was none, or none after `since`, in Unix seconds:
    the task's last start."""
    newest = next((one for one in reversed(requests) if task in one.tasks), None)
    return newest if newest and newest.time > since else None
