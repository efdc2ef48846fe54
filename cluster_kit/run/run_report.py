"""Files made from a run's directory: report and metrics, also for `/metrics` of a running job."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

from cluster_kit.errors import UsageError
from cluster_kit.metrics.prometheus import (
    RunFacts,
    Tally,
    Value,
    run_facts_of,
    run_facts_of_outcome,
    text,
    values_of,
)
from cluster_kit.observe import task_view, user_requests
from cluster_kit.observe.progress import USAGE, Entry, ProgressReader, without_values
from cluster_kit.observe.task_view import State, Straggler
from cluster_kit.observe.usage import Sample, sample_of
from cluster_kit.platforms.engine import Event
from cluster_kit.platforms.platform import WRITER
from cluster_kit.report.facts import FORMAT, facts_of
from cluster_kit.report.lanes import faults_of, goodput_of
from cluster_kit.report.page import (
    Evidence,
    checkpoints_of,
    entries_of,
    page,
    profiles_of,
    samples_of,
)
from cluster_kit.run.known_secrets import Connect, Known, known_of
from cluster_kit.run.run_directory import Record, read_events, read_record
from cluster_kit.util.masking import masked_facts, masker
from cluster_kit.version import __version__
from cluster_kit.workspace import CLUSTER_FILES, RunDirectory, write_atomically

DRILL = "drill.json"
"""The file in a run's directory with the faults of a drill and their results."""


class Reports:
    """What the tasks of a run have reported, oldest first: read once, when it is first needed."""

    def __init__(self, run: RunDirectory, record: Record) -> None:
        self.record = record
        self._where = run.output, record.cluster, record.since, record.sizes

    @cached_property
    def entries(self) -> list[Entry]:
        return entries_of(*self._where)

    @cached_property
    def samples(self) -> list[Sample]:
        return samples_of(*self._where)


def reports_of(run: RunDirectory) -> Reports | None:
    """The reports of a run; None if `up` did not start it.

    Raises:
        UsageError: another version of the kit started it.
    """
    record = read_record(run)
    return None if record is None else Reports(run, record)


def write_report(run: RunDirectory, known: Known, *, scaling: bool = False) -> Path:
    """Write report.json and report.html into the run's directory; return the path of the page.

    Args:
        scaling: predict the speed with more workers, too, which takes about a second.
        known: secrets that the files must not contain. If some are unknown, the page is created
            from report.json, if it exists.
    Raises:
        UsageError: there is nothing to report on.
        OSError: they cannot be written.
    """
    reports = reports_of(run) if scaling or known.are_all else None
    facts = _shown(run, known, reports)
    if scaling:
        facts["scaling"] = scaling_facts(run, known, reports)
    write_atomically(run.report.with_suffix(".json"), json.dumps(facts) + "\n")
    write_atomically(run.report, page([facts]))
    return run.report


def write_together(runs: Mapping[RunDirectory, Known], path: Path) -> None:
    """Write one page with these runs side by side; raises UsageError and OSError.

    The page's links to logs and traces lead from its folder to the runs' directories.
    """
    shown = [_linked(_shown(run, known), run, path) for run, known in runs.items()]
    write_atomically(path, page(shown))


def _linked(facts: dict[str, Any], run: RunDirectory, path: Path) -> dict[str, Any]:
    directory = quote(os.path.relpath(run.path.resolve(), path.parent.resolve()))
    tasks = [
        {**task, "log": f"{directory}/{task['log']}"} if task.get("log") else task
        for task in facts["tasks"]
    ]
    profiles = [
        {**each, "file": f"{directory}/{each['file']}"} for each in facts.get("profiles", ())
    ]
    return {**facts, "tasks": tasks, "profiles": profiles}


def _shown(run: RunDirectory, known: Known, reports: Reports | None = None) -> dict[str, Any]:
    return report_of(run, known, reports) if known.are_all else saved_report(run)


def report_of(
    run: RunDirectory, known: Known | None = None, reports: Reports | None = None
) -> dict[str, Any]:
    """The facts of a run without its secrets, as report.json has them.

    If some secrets are not known any more, all texts from tasks are masked.

    Args:
        known: the known secrets; without it, those found in its directory and this shell.
        reports: its reports, if they were read before.
    Raises:
        UsageError: the run was not started by `up`, or was started by another version of the kit.
    """
    reports = reports or reports_of(run)
    if reports is None:
        raise UsageError(
            f"{run.path} has no {run.record.name}: `cluster-kit up` has started no tasks there",
            f"if it failed before that, `cluster-kit summary {run.path}` says why; "
            "`cluster-kit runs` lists others",
        )
    record, entries, known = reports.record, reports.entries, known or known_of(run)
    if not known.are_all:
        entries = [without_values(entry, known.mask) for entry in entries]
    drill = _drill(run)
    faults = faults_of(drill, record.since)
    facts = facts_of(
        Evidence(
            name=run.path.name,
            cluster=record.cluster,
            outcome=outcome_facts(run, record.id),
            events=sorted(read_events(run, record.since), key=lambda event: event.time),
            entries=entries,
            samples=reports.samples,
            checkpoints=checkpoints_of(run.output, record.since),
            logs=sorted(file.stem for file in run.logs.glob("*.log")),
            faults=faults,
            goodput=goodput_of(drill) if faults else (),
            manifest=text_of(run.manifest),
            kit=_kit_of(run),
            profiles=profiles_of(run.output, record.since) if known.are_all else [],
            requests=[one for one in user_requests.read(run.path) if one.time >= record.since],
        )
    )
    shown: dict[str, Any] = masked_facts(facts, masker(known.values))
    return shown


def scaling_facts(
    run: RunDirectory, known: Known | None = None, reports: Reports | None = None
) -> dict[str, Any] | None:
    """The speed of a run that has ended with more workers; None if `up` did not start it.

    Args: as for `report_of`.

    Raises:
        UsageError: another version of the kit started it.
    """
    from cluster_kit.predict.scaling import scaling_of  # a run itself does not need it

    reports = reports or reports_of(run)
    if reports is None:
        return None
    known = known or known_of(run)
    shown = [without_values(entry, known.mask) for entry in reports.entries]
    facts: dict[str, Any] = scaling_of(reports.record.cluster, shown, reports.samples)
    return facts


def saved_report(run: RunDirectory) -> dict[str, Any]:
    """The content of report.json if the run has ended, else `report_of`; raises UsageError."""
    file = run.report.with_suffix(".json")
    try:
        if file.stat().st_mtime >= run.record.stat().st_mtime:
            facts: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
            if facts["format"] == FORMAT and facts["verdict"]["success"] is not None:
                return facts
    except (OSError, ValueError, LookupError, TypeError):
        pass  # it is created again
    return report_of(run)


def outcome_facts(run: RunDirectory, of: str) -> dict[str, Any]:
    """outcome.json, {} if there is none yet: a resumed run has that of the previous run.

    Args:
        of: the run's id.
    """
    try:
        outcome = json.loads(run.outcome.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return outcome if isinstance(outcome, dict) and outcome.get("id") == of else {}


def _drill(run: RunDirectory) -> object:
    """drill.json, None if there is none."""
    try:
        return json.loads((run.path / DRILL).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _kit_of(run: RunDirectory) -> str:
    """The version of the kit that ran it, by the first lines of its file; else this one's."""
    texts = (text_of(run.path / name) for name in CLUSTER_FILES)
    return next((found[1] for text in texts if (found := WRITER.search(text))), __version__)


def text_of(file: Path) -> str:
    """A file of a run, "" if it cannot be read."""
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


FILE = "metrics.prom"
"""The file's name in a run's directory."""


def write_metrics(run: RunDirectory, known: Known | None = None) -> Path:
    """Write metrics.prom into the run's directory; return its path.

    Args:
        known: secrets that no label may contain; without it, those found in the directory and this
            shell.
    Raises:
        UsageError: the run has no metrics.
        OSError: it cannot be written.
    """
    path = run.path / FILE
    write_atomically(path, text(_values(run, known or known_of(run))))
    return path


def exposition(runs: Iterable[RunDirectory], connect: Connect = lambda: None) -> str:
    """The metrics of these runs together; raises UsageError if one has none.

    Args:
        connect: returns the engine, or None; the engine provides secrets, which no label may
            contain.
    """
    return text(value for run in runs for value in _values(run, known_of(run, connect)))


def _values(run: RunDirectory, known: Known) -> Iterable[Value]:
    return masked_labels(RunMetrics(run).values(), known)


def masked_labels(values: Iterable[Value], known: Known) -> Iterator[Value]:
    """Yields the values without secrets: programs choose names of metrics, which are labels.

    If some secrets are not known any more, only the names in a run's outcome are written, which are
    masked.
    """
    mask = masker(known.values)
    for value in values:
        if known.are_all or not value.reported:
            yield replace(value, labels={key: mask(of) for key, of in value.labels.items()})


class RunMetrics:
    """The metrics of one run; each call of `values` reads what is new in its directory."""

    def __init__(self, run: RunDirectory) -> None:
        self._run = run
        self._record_at: int | None = None
        self._begin(None)

    def _begin(self, record: Record | None) -> None:
        self._record = record
        since, sizes = (record.since, record.sizes) if record else (0.0, {})
        tasks = [task.name for task in record.cluster.tasks] if record else None
        output = self._run.output
        self._entries = ProgressReader(output, since, sizes, tasks=tasks)
        self._usage = ProgressReader(output, since, sizes, suffix=USAGE, tasks=tasks)
        self._first = None if any(sizes.values()) else 0
        self._tallies: dict[str, Tally] = {}
        self._events = 0
        self._stragglers: Mapping[str, Straggler] = {}

    def values(
        self, engine: Mapping[str, State] | None = None, now: float | None = None
    ) -> list[Value]:
        """All values of the run.

        Args:
            engine: the states of its containers by task; without them, the tasks' files are used.
            now: the Unix time to use instead of the current one.
        Raises:
            UsageError: the run has neither a record nor an outcome.
        """
        self._look_at_record()
        facts = self._facts()
        tallies = {t.name: self._tallies.setdefault(t.name, Tally(self._first))
                   for t in facts.tasks}  # fmt: skip
        self._read(tallies)
        checkpoints = checkpoints_of(self._run.output, facts.since or 0.0)
        newest = checkpoints[-1] if checkpoints else None
        facts = replace(facts, engine=engine or {}, checkpoint=newest,
                        stragglers=frozenset(self._stragglers))  # fmt: skip
        return list(values_of(facts, tallies, time.time() if now is None else now))

    def _look_at_record(self) -> None:
        """Start over if the directory has another run's record: it was resumed."""
        try:
            changed = self._run.record.stat().st_mtime_ns
        except OSError:
            changed = None
        if changed == self._record_at:
            return
        self._record_at = changed
        try:
            self._begin(read_record(self._run))
        except UsageError:
            self._begin(None)  # another version of the kit wrote it

    def _facts(self) -> RunFacts:
        path, outcome = self._run.path, self._outcome()
        if self._record is not None:
            facts = run_facts_of(self._record.cluster, path.name, self._record.since)
            return replace(facts, outcome=outcome)
        if not outcome:
            raise UsageError(
                f"{path} has neither {self._run.record.name} of this version of the kit nor "
                f"{self._run.outcome.name}: there is nothing to tell",
                "`cluster-kit metrics` takes the name of a cluster or the directory of a run",
            )
        return run_facts_of_outcome(
            outcome, str(outcome.get("cluster") or path.parent.name), path.name
        )

    def _outcome(self) -> dict[str, Any]:
        """outcome.json, {} if there is none yet: a resumed run has that of the previous run."""
        try:
            outcome = json.loads(self._run.outcome.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        if not isinstance(outcome, dict) or (self._record and outcome.get("id") != self._record.id):
            return {}
        return outcome

    def _read(self, tallies: Mapping[str, Tally]) -> None:
        events = read_events(self._run, self._record.since if self._record else 0.0)
        new, self._events = events[self._events :], len(events)
        entries: list[Event | Entry] = [*new, *self._entries.poll()]
        for one in sorted(entries, key=lambda one: one.time):
            tally = tallies.get(one.task)
            if isinstance(one, Entry):
                self._stragglers = task_view.after(self._stragglers, one)
                if tally is not None:
                    tally.told(one)
            elif tally is not None:
                tally.happened(one)
        for line in self._usage.each():
            sample, tally = sample_of(line), tallies.get(line.task)
            if sample is not None and tally is not None:
                tally.used(sample)
