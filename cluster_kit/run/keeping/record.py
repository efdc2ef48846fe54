"""What is kept with a run from its start on, so that another process can go on with it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from cluster_kit.errors import UsageError
from cluster_kit.platforms.registry import platform_of
from cluster_kit.resolved import Cluster
from cluster_kit.run.judging.outcome import FORMAT, NOTHING, Outcome
from cluster_kit.run.timings import Stopwatch
from cluster_kit.util.clock import Clock, Moment
from cluster_kit.workspace import RunDirectory, write_atomically


@dataclass(frozen=True)
class Record:
    """The content of run.json: the cluster that was started, when, and by which run.

    `began` is when the command began, `since` (Unix seconds) when its containers were about to be
    started; `timings_s` are the steps until then. `id` is the containers' label `labels.RUN`.
    `sizes` are those of progress files before it, in bytes: that part is of an earlier run.
    """

    id: str
    cluster: Cluster
    began: Moment
    since: float
    timings_s: Mapping[str, float]
    sizes: Mapping[str, int]
    program: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of the user's program and of each module of it, by the name below its directory."""

    def stopwatch(self, clock: Clock) -> Stopwatch:
        """One that goes on measuring the run from where it began."""
        return Stopwatch(clock, self.timings_s, self.began.seconds(clock))


@cache
def _records() -> TypeAdapter[Record]:
    """Made when it is used: it takes pydantic 10 ms, and few commands read a record."""
    return TypeAdapter(Record)


@cache
def _outcomes() -> TypeAdapter[Outcome]:
    return TypeAdapter(Outcome)


def write_record(run: RunDirectory, record: Record) -> None:
    """Write run.json; raises OSError."""
    write_atomically(run.record, _records().dump_json(record, indent=2).decode() + "\n")


def read_record(run: RunDirectory) -> Record | None:
    """The record of a run, None if there is none: it was not started by `up`.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        return _records().validate_json(_with_settings(run.record.read_bytes()))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(run, str(error.strerror)) from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise _unreadable(run, f"{where}: {first['msg']} (another version of the kit?)") from None


def _with_settings(text: bytes) -> bytes:
    """The record with what an older kit kept otherwise: the settings under the platform's name."""
    try:
        record = json.loads(text)
        cluster = record["cluster"]
        if "settings" in cluster:
            return text
        platform = platform_of(cluster["engine"])
        cluster |= {
            "settings": cluster.get(platform.name) or {},
            "one_host": platform.one_host,
            "host_network": platform.host_network,
        }
        return json.dumps(record).encode()
    except (ValueError, KeyError, TypeError, RecursionError):
        return text  # whoever reads it says what is wrong


def _unreadable(run: RunDirectory, why: str) -> UsageError:
    return UsageError(
        f"{run.record} cannot be read: {why}",
        "`cluster-kit logs NAME` shows what its tasks said, `cluster-kit down NAME` removes it",
    )


def read_outcome(run: RunDirectory, of: str = "") -> Outcome | None:
    """The saved outcome of a directory's run, None without a valid one, or if it is of another run.

    A resumed run has the outcome of the run before until it has its own.

    Args:
        of: the id of the run; any if it is not given.
    """
    try:
        outcome = _outcomes().validate_json(run.outcome.read_bytes())
    except (OSError, ValidationError):
        return None
    return outcome if of in ("", outcome.id) else None


def outcome_from(facts: Mapping[str, Any]) -> Outcome:
    """The outcome that `as_json` gave; keys that an older kit did not write are left at nothing.

    Raises:
        ValueError: it is none, or of a format that this kit does not know.
    """
    if facts.get("format", FORMAT) != FORMAT:
        raise ValueError(f"format {facts['format']!r} is not {FORMAT}, which this kit reads")
    return _outcomes().validate_python({**NOTHING.as_json(), **facts})
