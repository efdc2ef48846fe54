"""The newest run of a cluster that is not up: how it ended, and what its tasks said."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from cluster_kit.workspace import RunDirectory


@dataclass(frozen=True)
class EndedRun:
    """`verdict` says why where it failed; it and `ended` are missing where none was written."""

    run: RunDirectory
    verdict: str = ""
    ended: datetime | None = None

    @property
    def told(self) -> str:
        """How it ended, in a few words."""
        if self.ended is None:
            return "has no verdict: it was cut off, or is about to start"
        return f"ended {self.ended:%Y-%m-%d %H:%M:%S}: {self.verdict}"


def newest_run(runs: Path) -> EndedRun | None:
    """What `latest` of a cluster's runs points at, None where there is no run yet."""
    latest = runs / "latest"
    if not latest.is_dir():
        return None
    run = RunDirectory(latest.resolve())
    try:
        outcome = json.loads(run.outcome.read_text(encoding="utf-8"))
        # Written last of all, after the containers were removed.
        ended = datetime.fromtimestamp(run.outcome.stat().st_mtime)
    except (OSError, ValueError):
        return EndedRun(run)
    return EndedRun(run, _verdict(outcome), ended) if isinstance(outcome, dict) else EndedRun(run)


def _verdict(outcome: dict[str, Any]) -> str:
    if outcome.get("success"):
        return "success"
    blame = f", blame {outcome['blame']}" if outcome.get("blame") else ""
    message = str(outcome.get("message", "")).partition("\n")[0]
    return f"failed{blame}: {message}" if message else f"failed{blame}"


def saved_logs(run: RunDirectory) -> dict[str, str]:
    """What each task said, times in front, as the engine had it."""
    files = sorted(run.logs.glob("*.log"))
    return {file.stem: file.read_bytes().decode("utf-8", errors="replace") for file in files}


@dataclass(frozen=True, order=True)
class Line:
    """A line of a task's log, with its time in RFC 3339."""

    time: str
    task: str
    text: str


def merged(logs: Mapping[str, str]) -> list[Line]:
    """The lines of several tasks' logs, by time; those of one time stay as they are."""
    lines = []
    for task, log in logs.items():
        # Only the engine's own ends of lines: a progress bar holds carriage returns.
        for line in filter(None, log.split("\n")):
            time, _, text = line.partition(" ")
            lines.append(Line(time, task, text.rstrip("\r")))
    return sorted(lines, key=lambda line: line.time)
