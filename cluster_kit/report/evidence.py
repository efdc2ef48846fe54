"""What a run has left in its directory, as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster_kit.observe.progress import USAGE, Entry, ProgressReader
from cluster_kit.observe.task_files import complete
from cluster_kit.observe.usage import Sample, sample_of
from cluster_kit.observe.user_requests import Asked
from cluster_kit.platforms.engine import Event
from cluster_kit.report.lanes import Fault
from cluster_kit.resolved import Cluster

Sizes = Mapping[str, int]


@dataclass(frozen=True)
class Evidence:
    """One run: its cluster as it was started, its outcome.json, and what was seen.

    `checkpoints` are (Unix seconds, name) of those that are still there; `logs` are the tasks whose
    log was saved; `faults` are those of a drill; `requests` are
    what persons asked; `name` is the directory's, `kit` the version that
    reports.
    """

    name: str
    cluster: Cluster
    outcome: Mapping[str, Any]
    events: Sequence[Event]
    entries: Sequence[Entry]
    samples: Sequence[Sample]
    checkpoints: Sequence[tuple[float, str]] = ()
    logs: Sequence[str] = ()
    faults: Sequence[Fault] = ()
    manifest: str = ""
    kit: str = ""
    profiles: Sequence[Mapping[str, Any]] = ()
    requests: Sequence[Asked] = ()


def entries_of(output: Path, cluster: Cluster, since: float, sizes: Sizes) -> list[Entry]:
    """The entries of a run's progress files, oldest first; those of an earlier run are left out."""
    tasks = [task.name for task in cluster.tasks]
    return ProgressReader(output, since, sizes, tasks=tasks).poll()


def samples_of(output: Path, cluster: Cluster, since: float, sizes: Sizes) -> list[Sample]:
    """The same of what tasks used."""
    tasks = [task.name for task in cluster.tasks]
    lines = ProgressReader(output, since, sizes, suffix=USAGE, tasks=tasks).poll()
    return [sample for line in lines if (sample := sample_of(line))]


def checkpoints_of(output: Path, since: float) -> list[tuple[float, str]]:
    """Those that were completed since Unix time `since` and are still there, oldest first."""
    return sorted(found for found in complete(output) if found[0] >= since)
