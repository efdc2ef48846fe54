"""The page of all clusters that are up, and of past runs."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from cluster_kit.engine.containers import SIDECAR
from cluster_kit.run.keeping.history import Run, runs_of
from cluster_kit.serve.server import event
from cluster_kit.serve.site import Site

MOST_RUNS = 100
REREAD_S = 5.0


def overview(site: Site, runs: Sequence[dict[str, Any]] | None = None) -> dict[str, Any]:
    """What the page shows: clusters that are up, past runs, what is wrong with the engine.

    Args:
        runs: see `past_runs`; read now if they are not given.
    """
    up: dict[str, list[str]] = {}
    for one in site.glance():
        if one.role != SIDECAR:
            up.setdefault(one.cluster, []).append(one.state)
    return {
        "clusters": [
            {"name": name, "tasks": len(states), "states": dict(Counter(states))}
            for name, states in sorted(up.items())
        ],
        "runs": list(past_runs(site) if runs is None else runs),
        "trouble": site.trouble,
    }


def past_runs(site: Site) -> list[dict[str, Any]]:
    """The newest runs of this workspace, the newest first."""
    return [_past(run) for run in runs_of(site.workspace)[:MOST_RUNS]]


def _past(run: Run) -> dict[str, Any]:
    return {
        "cluster": run.cluster,
        "run": run.directory.path.name,
        "began": f"{run.began:%Y-%m-%d %H:%M:%S}" if run.began else "",
        "verdict": run.verdict,
        "success": run.outcome.get("success"),
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
