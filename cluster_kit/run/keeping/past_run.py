"""Runs that have ended: which one is meant, its verdict and its logs."""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from cluster_kit.errors import UsageError
from cluster_kit.util.nearest import proposal
from cluster_kit.workspace import RunDirectory, Workspace, newest_run_directory


@dataclass(frozen=True)
class PastRun:
    """A saved run; without an outcome `verdict` is "" and `ended` None."""

    run: RunDirectory
    verdict: str = ""
    ended: datetime | None = None

    @property
    def summary(self) -> str:
        """When and how it ended, as the end of a sentence."""
        if self.ended is None:
            return "has no verdict: it was cut off, or is about to start"
        return f"ended {self.ended:%Y-%m-%d %H:%M:%S}: {self.verdict}"


def newest_run(runs: Path) -> PastRun | None:
    """The run that `latest` in a cluster's folder of runs points at, None if there is none."""
    run = newest_run_directory(runs)
    if run is None:
        return None
    try:
        outcome = json.loads(run.outcome.read_text(encoding="utf-8"))
        # It is the last file written, after the containers were removed.
        ended = datetime.fromtimestamp(run.outcome.stat().st_mtime)
    except (OSError, ValueError):
        return PastRun(run)
    return PastRun(run, verdict_of(outcome), ended) if isinstance(outcome, dict) else PastRun(run)


def verdict_of(outcome: Mapping[str, Any]) -> str:
    """`success`, or `failed` with the first line of the message, and before that the task to blame
    if the line does not begin with it; `stopped`."""
    if outcome.get("success"):
        return "success"
    message = str(outcome.get("message", "")).partition("\n")[0]
    to_blame = outcome.get("blame")
    blame = f", blame {to_blame}" if to_blame and not message.startswith(f"{to_blame} ") else ""
    word = "stopped" if outcome.get("reason") in ("stopped", "interrupted") else "failed"
    return f"{word}{blame}: {message}" if message else f"{word}{blame}"


def saved_logs(run: RunDirectory) -> dict[str, Iterator[str]]:
    """The lines of each task's saved log, by its name, which are read as they are asked for.

    Each has its time in front.
    """
    return {file.stem: _lines(file) for file in sorted(run.logs.glob("*.log"))}


def _lines(file: Path) -> Iterator[str]:
    with file.open(encoding="utf-8", errors="replace", newline="\n") as lines:
        for line in lines:
            yield line.rstrip("\n")


@dataclass(frozen=True, order=True)
class Line:
    """A line of a task's log, with its time in RFC 3339."""

    time: str
    task: str
    text: str


def merged(logs: Mapping[str, Iterable[str]]) -> Iterator[Line]:
    """Yields the lines of several tasks' logs in the order of their times, in bounded memory.

    Equal times keep their order, and so do the lines of one task.
    """
    return heapq.merge(
        *(_stamped(task, log) for task, log in logs.items()), key=lambda line: line.time
    )


def _stamped(task: str, log: Iterable[str]) -> Iterator[Line]:
    for line in filter(None, log):
        time, _, text = line.partition(" ")
        yield Line(time, task, text.rstrip("\r"))


def run_named(reference: str, workspace: Workspace) -> RunDirectory:
    """The run that a command line names.

    Args:
        reference: a run's directory, CLUSTER/RUN as `runs` lists it, or a cluster's name, which
            means its newest run; "" for the newest run of all.
    Raises:
        UsageError: there is none.
    """
    given = Path(reference).expanduser()
    if reference and given.is_dir():
        return RunDirectory(given.resolve())
    below = workspace.root / "runs" / reference
    if "/" in reference and (below / "output").is_dir():
        return RunDirectory(below.resolve())
    known = workspace.latest_runs()
    if not reference and known:
        newest = max(known.values(), key=lambda path: path.stat().st_mtime)
        return RunDirectory(newest.resolve())
    if reference in known:
        return RunDirectory(known[reference].resolve())
    if not reference:
        raise UsageError(
            f"no run in {workspace.root / 'runs'} yet", "run `cluster-kit up quickstart` first"
        )
    raise UsageError(
        f"no run `{reference}`: neither a directory, nor a cluster in runs/",
        proposal(reference, sorted(known)),
    )
