"""The pages of the live view, and the events that keep them up to date."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from cluster_kit.errors import UsageError
from cluster_kit.platforms.engine import SIDECAR
from cluster_kit.report.page import DRAWS, document
from cluster_kit.run.history import STOPPED, Run, newest_run, runs_of, verdicts_of
from cluster_kit.run.run_directory import Record, read_record
from cluster_kit.run.run_report import outcome_facts, saved_report, scaling_facts
from cluster_kit.run.verdict import Reason
from cluster_kit.serve.incremental import Reading
from cluster_kit.serve.server import Response, event
from cluster_kit.serve.site import Site
from cluster_kit.workspace import RunDirectory

LIVE = "live/stream.js"
OF_RUN = (*DRAWS, LIVE, "live/logs.js")


def overview_page(facts: Mapping[str, Any]) -> Response:
    """The page of all clusters, and of past runs."""
    return _page("cluster-kit", facts, (*DRAWS, LIVE, "live/overview.js"))


def cluster_page(site: Site, name: str) -> Response:
    """The page of a cluster: it always shows the newest run, even if a new one starts."""
    scripts = (*OF_RUN, "live/now.js", "live/grow.js", "live/cluster.js")
    return _page(name, {"cluster": name, "control": site.control}, scripts)


def run_page(site: Site, cluster: str, run: str) -> Response:
    """The page of a run that has ended; raises UsageError."""
    facts = _with_scaling(site.run(cluster, run))
    return _page(f"{cluster} {run}", {"run": facts}, (*OF_RUN, "live/run.js"))


def _page(title: str, facts: Mapping[str, Any], scripts: tuple[str, ...]) -> Response:
    return Response(document(title, facts, scripts, live=True).encode())


MOST_RUNS = 100
REREAD_S = 5.0


def overview(site: Site, runs: Sequence[dict[str, Any]] | None = None) -> dict[str, Any]:
    """The facts on the page: clusters that are up, past runs, the engine's problem.

    Args:
        runs: see `past_runs`; read now if they are not given.
    """
    up: dict[str, list[str]] = {}
    for one in site.glance():
        if one.role != SIDECAR:
            up.setdefault(one.cluster, []).append(one.state)
    return {
        "clusters": [
            {"name": name, "tasks": len(states), "states": dict(sorted(Counter(states).items()))}
            for name, states in sorted(up.items())
        ],
        "runs": list(past_runs(site) if runs is None else runs),
        "trouble": site.trouble,
    }


def past_runs(site: Site) -> list[dict[str, Any]]:
    """The newest runs of this workspace, the newest first."""
    newest = runs_of(site.workspace)[:MOST_RUNS]
    verdicts = verdicts_of(newest)
    return [_past(run, verdicts[run.name]) for run in newest]


def _past(run: Run, verdict: str) -> dict[str, Any]:
    return {
        "cluster": run.cluster,
        "run": run.directory.path.name,
        "began": f"{run.began:%Y-%m-%d %H:%M:%S}" if run.began else "",
        "metric": run.figure,
        "verdict": verdict,
        "success": run.outcome.get("success"),
        "stopped": run.outcome.get("reason") in STOPPED,
        "seconds": run.timings.get("total"),
    }


class Overview:
    """See `channel.Source`."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._told: dict[str, Any] = {}
        self._runs: list[dict[str, Any]] = []
        self._reread_at = 0.0

    def look(self, *, last: bool = False) -> bytes:
        if last or time.monotonic() >= self._reread_at:
            self._runs = past_runs(self._site)
            self._reread_at = time.monotonic() + REREAD_S
        new = overview(self._site, self._runs)
        changed, self._told = new != self._told, new
        return self.whole() if changed else b""

    def close(self) -> None:
        pass

    def whole(self) -> bytes:
        return event("overview", json.dumps(self._told))


FIND_S = 1.0
Stamp = tuple[Path, int, int]
"""Identifies a state of a run: its directory, and the times of its record and its outcome."""


class Feed:
    """See `channel.Source`: sends the newest run of a cluster, and changes to a newer one."""

    def __init__(self, site: Site, cluster: str) -> None:
        self._site, self._cluster = site, cluster
        self._reading: Reading | None = None
        self._stamp: Stamp | None = None
        self._fixed = ""
        """The facts of a run that has ended or cannot be read, and so is not read piece by
        piece."""
        self._find_at = 0.0
        self._found: object = None
        self._up: dict[str, str] = {}
        self._trouble = ""

    def look(self, *, last: bool = False) -> bytes:
        if last:
            self._find_at = 0.0
        other = self._find()
        news = None
        if self._reading is not None:
            self._reading.read()
            news = self._reading.news()
        trouble, self._trouble = self._trouble, self._site.trouble
        if other or trouble != self._trouble:
            return self.whole()
        return event("news", self._reading.as_text(news)) if self._reading and news else b""

    def close(self) -> None:
        if self._reading is not None:
            self._reading.close()

    def whole(self) -> bytes:
        trouble = event("trouble", json.dumps(self._trouble))
        if self._reading is not None:
            return trouble + event("run", self._reading.as_text(self._reading.whole()))
        return trouble + event("run", self._fixed)

    def _find(self) -> bool:
        """Find the current run, once a second; returns whether pages must get everything again."""
        if time.monotonic() < self._find_at:
            return False
        self._find_at = time.monotonic() + FIND_S
        known = self._site.of(self._cluster)
        if self._site.trouble and self._reading:
            return False  # the tasks may continue; their files are read as before
        self._up = {c.name: c.state for c in known if c.role != SIDECAR}
        run = self._site.newest(self._cluster)
        stamp = _stamp(run) if run else None
        if (state := (stamp, dict(self._up))) == self._found:
            return False
        before = self._reading, self._fixed
        self._reading, self._fixed = self._open(run, stamp)
        if before[0] is not None and before[0] is not self._reading:
            before[0].close()
        self._stamp, self._found = stamp, state
        return (self._reading, self._fixed) != before

    def _open(self, run: RunDirectory | None, stamp: Stamp | None) -> tuple[Reading | None, str]:
        """The reader of this run, or the facts that are sent instead."""
        if run is None:
            return None, self._none(f"{self._cluster} is not up, and there is no run of it here")
        try:
            record = read_record(run)
            if record is None and not self._up:
                past = newest_run(run.path.parent)
                how = f", {past.summary}" if past and past.run.path == run.path else ""
                return None, self._none(
                    f"no task of {self._cluster} has started: its newest run, {run.path.name}{how}"
                )
            if record is None:
                return None, self._none(
                    f"{self._cluster} was not started by `cluster-kit up`: only the states of its "
                    "tasks and their logs are known"
                )
            if self._has_ended(run, record):
                return None, json.dumps({"run": _with_scaling(run), "now": {}, "ended": True})
            if not self._up:
                return None, json.dumps({"run": saved_report(run), "now": {}, "ended": False})
        except UsageError as error:
            return None, self._none(error.message)
        if self._reading and self._stamp and stamp and self._stamp[:2] == stamp[:2]:
            return self._reading, ""
        return Reading(self._site, run, record), ""

    def _has_ended(self, run: RunDirectory, record: Record) -> bool:
        """A run whose engine was lost continues if its tasks still run."""
        outcome = outcome_facts(run, record.id)
        goes_on = outcome.get("reason") == Reason.ENGINE and "running" in self._up.values()
        return bool(outcome) and not goes_on

    def _none(self, why: str) -> str:
        return json.dumps({"none": why, "states": self._up})


def _with_scaling(run: RunDirectory) -> dict[str, Any]:
    """The report of a run that has ended, with its speed with more workers."""
    facts = saved_report(run)
    if facts.get("scaling") is None and facts["verdict"]["success"] is not None:
        facts = {**facts, "scaling": _scaling(run, _stamp(run))}
    return facts


@lru_cache(maxsize=64)
def _scaling(run: RunDirectory, _stamp: Stamp) -> dict[str, Any] | None:
    return scaling_facts(run)


def _stamp(run: RunDirectory) -> Stamp:
    return run.path, _written(run.record), _written(run.outcome)


def _written(file: Path) -> int:
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0
