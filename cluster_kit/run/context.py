"""What all steps of one run share."""

from __future__ import annotations

from dataclasses import dataclass

from cluster_kit.backends.interface import Backend
from cluster_kit.engine.interface import Engine
from cluster_kit.run.prepare import Prepared
from cluster_kit.run.timings import Stopwatch
from cluster_kit.show.view import View
from cluster_kit.workspace import RunDirectory, Workspace


@dataclass(frozen=True)
class Launch:
    """One run of a cluster: from where to where, by which engine, before whose eyes."""

    prepared: Prepared
    workspace: Workspace
    view: View
    engine: Engine
    backend: Backend
    timings: Stopwatch
    directory: RunDirectory
    since: float
    """Unix time from which on events and progress are this run's."""
    keep: bool

    @property
    def name(self) -> str:
        return self.prepared.cluster.name
