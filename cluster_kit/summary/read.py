"""Finds a run's verdict and what was kept of it: by the run's directory, a file, or a cluster."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster_kit.errors import UsageError
from cluster_kit.observe.progress import Entry, ProgressReader
from cluster_kit.platforms.engine import Event
from cluster_kit.run.outcome import Outcome, without_run
from cluster_kit.run.run_directory import Record, outcome_from, read_events, read_record
from cluster_kit.util.nearest import proposal
from cluster_kit.workspace import RunDirectory, Workspace


@dataclass(frozen=True)
class Evidence:
    """A run's outcome, and when its containers started and ended and what its tasks reported.

    Of a run that never started there is only the outcome, without tasks and directory.
    """

    outcome: Outcome
    events: tuple[Event, ...] = ()
    entries: tuple[Entry, ...] = ()


def read(reference: str, workspace: Workspace) -> Evidence:
    """The evidence of a run.

    Args:
        reference: a run's directory, its outcome.json, a file with what `up --json` printed, or a
            cluster's name, which means its newest run; "" for the newest run of all.
    Raises:
        UsageError: it was not found, has no verdict yet, or is not a run's.
    """
    path = _file(reference, workspace)
    facts = _facts(path)
    if "error" in facts:
        saved = Path(str(facts.get("run") or ""), "outcome.json")
        if not (facts.get("run") and saved.is_file()):
            return Evidence(_checked(without_run, facts, path))
        path, facts = saved, _facts(saved)
    outcome = _checked(outcome_from, facts, path)
    kept = path.parent if (path.parent / "events.jsonl").is_file() else Path(outcome.run)
    run = RunDirectory(kept)
    record = _record(run, outcome)
    since, sizes = (record.since, record.sizes) if record else (-math.inf, {})
    tasks = record.cluster.tasks if record else outcome.tasks
    names = [task.name for task in tasks] or None  # a job of Slurm's outcome lists none
    entries = ProgressReader(run.output, since, sizes, tasks=names).poll()
    return Evidence(outcome, tuple(read_events(run, since)), tuple(entries))


def _record(run: RunDirectory, outcome: Outcome) -> Record | None:
    """What was kept at the start of this run: a resumed one has events of earlier ones, too."""
    try:
        record = read_record(run)
    except UsageError:
        return None
    return record if record and record.id == outcome.id else None


def _file(reference: str, workspace: Workspace) -> Path:
    """The file that has the verdict; raises UsageError."""
    given = Path(reference).expanduser()
    if not reference:
        newest = _newest(workspace)
    elif given.is_file():
        return given
    elif given.is_dir():
        newest = given
    else:
        newest = workspace.runs(reference) / "latest"
        if "/" in reference or not newest.is_dir():
            raise UsageError(
                f"no run `{reference}`: neither a file or directory, nor a cluster in runs/",
                proposal(reference, sorted(workspace.latest_runs())),
            )
    file = newest / "outcome.json"
    if not file.is_file():
        raise UsageError(
            f"{newest} has no verdict: no outcome.json is in it",
            "name the directory of a run that has ended, for example runs/quickstart/latest",
        )
    return file


def _newest(workspace: Workspace) -> Path:
    """The directory of the run that ended last; raises UsageError if there is none."""
    found = list(workspace.root.glob("runs/*/latest/outcome.json"))
    if not found:
        raise UsageError(
            f"no run in {workspace.root / 'runs'} has ended yet",
            "name a run's directory, or run `cluster-kit up quickstart` first",
        )
    return max(found, key=lambda path: path.stat().st_mtime).parent


def _facts(path: Path) -> Mapping[str, Any]:
    """The JSON object in a file; raises UsageError if it holds something else."""
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read: {error}", _WANTED) from error
    if not isinstance(facts, dict) or "success" not in facts:
        raise UsageError(f"{path} is not the outcome of a run: it has no key `success`", _WANTED)
    return facts


_WANTED = "name an outcome.json, or a file with what `cluster-kit up --json` printed"


def _checked(make: Any, facts: Mapping[str, Any], path: Path) -> Outcome:
    try:
        outcome: Outcome = make(facts)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise UsageError(f"{path} is not the outcome of a run: {error!r}", _WANTED) from error
    return outcome


def values(outcome: Outcome) -> dict[str, str]:
    """success, exit_code, reason, blame, run and outcome, each one line; "" for what is not there.

    `run` is the run's directory, `outcome` the path of its outcome.json.
    """
    facts = {
        "success": "true" if outcome.success else "false",
        "exit_code": str(outcome.exit_code),
        "reason": outcome.reason,
        "blame": outcome.blame or "",
        "run": outcome.run,
        "outcome": str(Path(outcome.run) / "outcome.json") if outcome.run else "",
    }
    return {name: " ".join(value.splitlines()) for name, value in facts.items()}
