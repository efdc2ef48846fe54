"""What is kept with a run from its start on, so that another process can go on with it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError

from cluster_kit.cluster import Cluster
from cluster_kit.errors import UsageError
from cluster_kit.run.outcome import Outcome
from cluster_kit.run.timings import Stopwatch
from cluster_kit.workspace import RunDirectory, write_atomically


@dataclass(frozen=True)
class Record:
    """The content of run.json: the cluster that was started, and when (Unix seconds).

    `began` is when the command began, `since` when its containers were about to be started;
    `timings_s` are the steps until then.
    """

    cluster: Cluster
    began: float
    since: float
    timings_s: Mapping[str, float]

    def stopwatch(self) -> Stopwatch:
        """One that goes on measuring the run from where it began."""
        return Stopwatch(dict(self.timings_s), time.monotonic() - (time.time() - self.began))


_RECORD = TypeAdapter(Record)
_OUTCOME = TypeAdapter(Outcome)


def write_record(run: RunDirectory, cluster: Cluster, since: float, timings: Stopwatch) -> None:
    """Write run.json; raises OSError."""
    began = time.time() - (time.monotonic() - timings.began)
    record = Record(cluster, began, since, timings.timings)
    write_atomically(run.record, _RECORD.dump_json(record, indent=2).decode() + "\n")


def read_record(run: RunDirectory) -> Record | None:
    """The record of a run, None if there is none: it was not started by `up`.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        return _RECORD.validate_json(run.record.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(run, str(error.strerror)) from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise _unreadable(run, f"{where}: {first['msg']} (another version of the kit?)") from None


def _unreadable(run: RunDirectory, why: str) -> UsageError:
    return UsageError(
        f"{run.record} cannot be read: {why}",
        "`cluster-kit logs NAME` shows what its tasks said, `cluster-kit down NAME` removes it",
    )


def read_outcome(run: RunDirectory, since: float) -> Outcome | None:
    """The saved outcome of a run, None without a valid one, or if it was written before `since`.

    A resumed run has the outcome of the run before until it has its own.
    """
    try:
        if run.outcome.stat().st_mtime < since:
            return None
        return _OUTCOME.validate_json(run.outcome.read_bytes())
    except (OSError, ValidationError):
        return None
