"""The run that containers are of: which one it is, and what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cluster_kit.errors import UsageError
from cluster_kit.platforms.engine import Container
from cluster_kit.run.keeping.record import read_outcome, read_record
from cluster_kit.workspace import RunDirectory


def is_recorded(containers: Sequence[Container]) -> bool:
    """Whether `up` started these containers, so that another process can go on with them."""
    return run_of(containers).record.exists()


def unjudged(containers: Sequence[Container]) -> bool:
    """Whether these containers are of a run that was started, and not judged yet."""
    if not any(container.leader and container.started > 0 for container in containers):
        return False
    run = run_of(containers)
    try:
        record = read_record(run)
    except UsageError:
        return False
    return record is not None and read_outcome(run, record.id) is None


def kept_run(containers: Sequence[Container]) -> RunDirectory | None:
    """The run whose containers were left on purpose; None if they were not."""
    run = run_of(containers)
    try:
        record = read_record(run)
    except UsageError:
        return None
    outcome = read_outcome(run, record.id) if record else None
    return run if outcome is not None and outcome.kept else None


def run_of(containers: Sequence[Container]) -> RunDirectory:
    """The directory of the run that containers are of, by what they have as /output.

    It has no record if they were started without the kit.
    """
    return RunDirectory(Path(containers[0].output).parent)
