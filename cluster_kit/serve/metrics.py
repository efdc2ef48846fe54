"""`/metrics`: the runs whose clusters are up, and those that ended lately, for Prometheus."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path

from cluster_kit.errors import EngineError, HostError, UsageError
from cluster_kit.metrics.exposition import CONTENT_TYPE, text
from cluster_kit.metrics.table import PREFIX
from cluster_kit.metrics.values import Value
from cluster_kit.observe.task_view import State
from cluster_kit.platforms.engine import SIDECAR, Engine
from cluster_kit.run.known_secrets import Known, known_of
from cluster_kit.run.run_metrics import RunMetrics, masked_labels
from cluster_kit.serve.server import Response
from cluster_kit.serve.site import Site
from cluster_kit.util.untrusted import files
from cluster_kit.workspace import RunDirectory

LATELY_S = 600.0
"""A run is told for so long after its last word, so that its verdict is scraped, too."""


class Scraped:
    """Answers each scrape; what was read for one is not read for the next."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._known: dict[Path, RunMetrics] = {}
        self._secrets: dict[Path, Known] = {}
        self._lock = threading.Lock()

    def response(self) -> Response:
        with self._lock:
            return Response(text(self._values()).encode(), CONTENT_TYPE)

    def _values(self) -> Iterator[Value]:
        found = self._runs()
        yield Value(f"{PREFIX}engine_up", {}, not self._site.trouble)
        self._known = {
            path: self._known.get(path) or RunMetrics(RunDirectory(path)) for path in sorted(found)
        }
        for path, metrics in self._known.items():
            try:
                yield from masked_labels(metrics.values(found[path]), self._secrets_of(path))
            except UsageError:
                continue  # it is about to begin, or was removed just now

    def _secrets_of(self, path: Path) -> Known:
        """The secrets of a run, asked for until all are known: later its containers are gone."""
        if not (path in self._secrets and self._secrets[path].are_all):
            self._secrets[path] = known_of(RunDirectory(path), self._engine)
        return self._secrets[path]

    def _engine(self) -> Engine | None:
        try:
            return self._site.engine()
        except (EngineError, HostError):
            return None

    def _runs(self) -> dict[Path, Mapping[str, State]]:
        """The states of containers by task, by the directory of their run."""
        found: dict[Path, dict[str, State]] = {}
        for one in self._site.glance():
            if one.output and one.role != SIDECAR:
                path = Path(one.output).parent
                found.setdefault(path, {})[one.name] = State.of_engine(one.state)
        ended: dict[Path, dict[str, State]] = {
            path.resolve(): {}
            for path in self._site.workspace.latest_runs().values()
            if time.time() - _last_word(path) < LATELY_S
        }
        return {**ended, **found}


def _last_word(run: Path) -> float:
    """When a run's outcome, record or what a task used was written last, Unix seconds; 0: never."""
    own = files(run, matches=lambda name: name.endswith(".json"), deepest=0)
    told = files(
        run / "output",
        "progress",
        matches=lambda name: name.endswith((".usage", ".beat")),
        deepest=0,
    )
    return max((file.changed for file in chain(own, told)), default=0.0)
