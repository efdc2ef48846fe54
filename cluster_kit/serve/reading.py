"""Reads a run that goes on from its directory: only what has changed since the last time."""

from __future__ import annotations

import contextlib
import json
import time

from cluster_kit.errors import EngineError, HostError
from cluster_kit.observe.progress import USAGE, ProgressReader
from cluster_kit.report.evidence import checkpoints_of
from cluster_kit.run.keeping.record import Record
from cluster_kit.run.keeping.report import text_of
from cluster_kit.serve.growing import About, Facts, Growing
from cluster_kit.serve.happened import Happened
from cluster_kit.serve.site import Site
from cluster_kit.util.masking import Mask, masked_facts, masker
from cluster_kit.version import __version__
from cluster_kit.workspace import RunDirectory

CHECKPOINTS_S = 5.0
SHARE = 0.01
"""Of one core, for looking through everything that a run has written."""


class Reading:
    """One run of a cluster that is up."""

    def __init__(self, site: Site, run: RunDirectory, record: Record) -> None:
        self._site, self._run, self._record = site, run, record
        about = run.output, record.since, record.sizes
        tasks = [task.name for task in record.cluster.tasks]
        self._progress = ProgressReader(*about, tasks=tasks)
        self._usage = ProgressReader(*about, tasks=tasks, suffix=USAGE)
        self._happened = Happened(site, run, record)
        self._growing = Growing(
            record.cluster, About(run.path.name, text_of(run.manifest), __version__)
        )
        self._mask = self._masker()
        self._checkpoints_at = 0.0

    def read(self) -> None:
        """Read what is new."""
        self._happened.listen()
        self._growing.add(self._happened.poll(), self._progress.poll(), self._usage.poll())
        began = time.monotonic()
        if began >= self._checkpoints_at:
            with contextlib.suppress(OSError):  # a directory that is removed just now
                found = checkpoints_of(self._run.output, self._record.since)
                self._growing.note_checkpoints(found)
            now = time.monotonic()
            self._checkpoints_at = now + max(CHECKPOINTS_S, (now - began) / SHARE)

    def close(self) -> None:
        """Listen to the engine no more."""
        self._happened.close()

    def whole(self) -> Facts:
        return self._growing.whole()

    def news(self) -> Facts | None:
        return self._growing.news()

    def as_text(self, facts: Facts) -> str:
        """JSON in which no value of a secret is."""
        text = json.dumps(facts, separators=(",", ":"))
        if self._mask(text) == text:
            return text
        return json.dumps(masked_facts(facts, self._mask), separators=(",", ":"))

    def _masker(self) -> Mask:
        try:
            containers = self._site.engine().containers(self._record.cluster.name, self._record.id)
        except (EngineError, HostError):
            containers = []
        return masker({value for one in containers for value in one.secrets})
