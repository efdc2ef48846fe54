"""report.html and report.json of a run, from what it has left in its directory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cluster_kit.errors import UsageError
from cluster_kit.observe import user_requests
from cluster_kit.observe.progress import without_values
from cluster_kit.report.facts import FORMAT, facts_of
from cluster_kit.report.lanes import faults_of
from cluster_kit.report.page import (
    Evidence,
    checkpoints_of,
    entries_of,
    page,
    profiles_of,
    samples_of,
)
from cluster_kit.run.known_secrets import Known, known_of
from cluster_kit.run.run_directory import read_events, read_record
from cluster_kit.util.masking import masked_facts, masker
from cluster_kit.version import __version__
from cluster_kit.workspace import RunDirectory, write_atomically

DRILL = "drill.json"
"""In the directory of a run: what a drill has broken, and what became of it."""


def write_report(run: RunDirectory, known: Known) -> Path:
    """Write report.json and report.html into the run's directory; the path of the page.

    Args:
        known: secrets that neither may have. If some are not known any more, the page is made of
            what report.json has, if there is one.
    Raises:
        UsageError: there is nothing to report on.
        OSError: they cannot be written.
    """
    facts = _shown(run, known)
    write_atomically(run.report.with_suffix(".json"), json.dumps(facts) + "\n")
    write_atomically(run.report, page([facts]))
    return run.report


def write_together(runs: Mapping[RunDirectory, Known], path: Path) -> None:
    """Write one page with these runs side by side; raises UsageError and OSError."""
    write_atomically(path, page([_shown(run, known) for run, known in runs.items()]))


def _shown(run: RunDirectory, known: Known) -> dict[str, Any]:
    return report_of(run, known) if known.are_all else saved_report(run)


def report_of(run: RunDirectory, known: Known | None = None) -> dict[str, Any]:
    """The facts of a run without its secrets, as report.json has them.

    If some secrets are not known any more, all words of tasks are masked.

    Args:
        known: what is known of its secrets; without it, what its directory and this shell tell.
    Raises:
        UsageError: the run was not started by `up`, or by another version of the kit.
    """
    record = read_record(run)
    if record is None:
        raise UsageError(
            f"{run.path} has no {run.record.name}: no run of `cluster-kit up` has left it",
            "`cluster-kit report` takes the name of a cluster or the directory of a run",
        )
    known = known or known_of(run)
    entries = entries_of(run.output, record.cluster, record.since, record.sizes)
    if not known.are_all:
        entries = [without_values(entry, known.mask) for entry in entries]
    facts = facts_of(
        Evidence(
            name=run.path.name,
            cluster=record.cluster,
            outcome=outcome_facts(run, record.id),
            events=sorted(read_events(run, record.since), key=lambda event: event.time),
            entries=entries,
            samples=samples_of(run.output, record.cluster, record.since, record.sizes),
            checkpoints=checkpoints_of(run.output, record.since),
            logs=sorted(file.stem for file in run.logs.glob("*.log")),
            faults=faults_of(_drill(run), record.since),
            manifest=text_of(run.manifest),
            kit=__version__,
            profiles=profiles_of(run.output, record.since) if known.are_all else [],
            requests=[one for one in user_requests.read(run.path) if one.time >= record.since],
        )
    )
    shown: dict[str, Any] = masked_facts(facts, masker(known.values))
    return shown


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
