"""report.html and report.json of a run, from what it has left in its directory."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from cluster_kit.errors import UsageError
from cluster_kit.report.evidence import Evidence, checkpoints_of, entries_of, samples_of
from cluster_kit.report.facts import FORMAT, facts_of
from cluster_kit.report.faults import faults_of
from cluster_kit.report.page import page
from cluster_kit.report.profiles import profiles_of
from cluster_kit.run.keeping.evidence import read_events
from cluster_kit.run.keeping.record import read_record
from cluster_kit.util.masking import masked
from cluster_kit.version import __version__
from cluster_kit.workspace import RunDirectory, write_atomically

DRILL = "drill.json"
"""In the directory of a run: what a drill has broken, and what became of it."""


def write_report(run: RunDirectory, secrets: Iterable[str] = ()) -> Path:
    """Write report.json and report.html into the run's directory; the path of the page.

    Args:
        secrets: values that neither may have.
    Raises:
        UsageError: there is nothing to report on.
        OSError: they cannot be written.
    """
    escaped = {json.dumps(value)[1:-1] for value in secrets}
    text = masked(json.dumps(report_of(run)), escaped)
    write_atomically(run.report.with_suffix(".json"), text + "\n")
    write_atomically(run.report, page([json.loads(text)]))
    return run.report


def write_together(runs: Sequence[RunDirectory], path: Path) -> None:
    """Write one page with these runs side by side; raises UsageError and OSError."""
    write_atomically(path, page([report_of(run) for run in runs]))


def report_of(run: RunDirectory) -> dict[str, Any]:
    """The facts of a run, as report.json has them.

    Raises:
        UsageError: the run was not started by `up`, or by another version of the kit.
    """
    record = read_record(run)
    if record is None:
        raise UsageError(
            f"{run.path} has no {run.record.name}: no run of `cluster-kit up` has left it",
            "`cluster-kit report` takes the name of a cluster or the directory of a run",
        )
    return facts_of(
        Evidence(
            name=run.path.name,
            cluster=record.cluster,
            outcome=outcome_facts(run, record.id),
            events=sorted(read_events(run, record.since), key=lambda event: event.time),
            entries=entries_of(run.output, record.cluster, record.since, record.sizes),
            samples=samples_of(run.output, record.cluster, record.since, record.sizes),
            checkpoints=checkpoints_of(run.output, record.since),
            logs=sorted(file.stem for file in run.logs.glob("*.log")),
            faults=faults_of(_drill(run), record.since),
            manifest=text_of(run.manifest),
            kit=__version__,
            profiles=profiles_of(run.output, record.since),
        )
    )


def saved_report(run: RunDirectory) -> dict[str, Any]:
    """What report.json has of a run that has ended, else `report_of`; raises UsageError."""
    file = run.report.with_suffix(".json")
    try:
        if file.stat().st_mtime >= run.record.stat().st_mtime:
            facts: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
            if facts["format"] == FORMAT and facts["verdict"]["success"] is not None:
                return facts
    except (OSError, ValueError, LookupError, TypeError):
        pass  # it is made anew
    return report_of(run)


def outcome_facts(run: RunDirectory, of: str) -> dict[str, Any]:
    """outcome.json, {} as long as there is none: a resumed run has that of the run before.

    Args:
        of: the run's id.
    """
    try:
        found = json.loads(run.outcome.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and found.get("id") == of else {}


def _drill(run: RunDirectory) -> object:
    """drill.json, None if there is none."""
    try:
        return json.loads((run.path / DRILL).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def text_of(file: Path) -> str:
    """A file of a run, "" if it cannot be read."""
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
