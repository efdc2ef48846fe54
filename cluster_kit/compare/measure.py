"""Computes the comparison's figures from a run's outcome and progress. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from cluster_kit.compare.variants import Run
from cluster_kit.observe.progress import Entry
from cluster_kit.roles import ROLES
from cluster_kit.run.judging.outcome import Outcome
from cluster_kit.run.judging.task_outcome import TaskOutcome


@dataclass(frozen=True)
class Measured:
    """The figures of a successful run; None if a figure was not measured."""

    images_per_s: float | None
    updates: int | None
    staleness_mean: float | None
    staleness_max: int | None
    accuracy: float | None
    """Validation, of the last checkpoint."""
    seconds_to_accuracy: float | None
    """From the first step to the first checkpoint with the accuracy; None if none reached it."""
    curve: tuple[tuple[float, float], ...]
    """(seconds since the first step, validation accuracy) of every checkpoint."""
    bytes_per_update: Mapping[str, float]
    """By role: the bytes that all its containers received and sent, per update of the run."""
    seconds: float
    """The whole run, from `up` to the end."""


@dataclass(frozen=True)
class Result:
    """The result of one run: its figures, or why there are none."""

    run: Run
    measured: Measured | None = None
    failed: str = ""

    def facts(self) -> dict[str, Any]:
        """The values for compare.json."""
        return {
            "scenario": self.run.scenario.key,
            "variant": self.run.variant.key,
            "title": self.run.variant.title,
            "cpus": self.run.cpus,
            "skipped": self.run.skipped or None,
            "failed": self.failed or None,
            "measured": asdict(self.measured) if self.measured else None,
        }


def result(run: Run, outcome: Outcome, entries: Sequence[Entry], accuracy: float) -> Result:
    """The result of a run that has ended.

    Args:
        entries: of all tasks' progress files, oldest first.
        accuracy: the validation accuracy to reach, 0 to 1.
    """
    if not outcome.success:
        names_it = not outcome.blame or outcome.message.startswith(f"{outcome.blame} ")
        blame = "" if names_it else f"{outcome.blame}: "
        return Result(run, failed=f"{blame}{outcome.message}")
    metrics = outcome.metrics
    updates = metrics.get("updates", metrics.get("global_step"))
    curve = _curve(entries)
    reached = [seconds for seconds, scored in curve if scored >= accuracy]
    return Result(
        run,
        Measured(
            images_per_s=metrics.get("images_per_second"),
            updates=updates,
            staleness_mean=metrics.get("staleness_mean"),
            staleness_max=metrics.get("staleness_max"),
            accuracy=metrics.get("validation_accuracy"),
            seconds_to_accuracy=reached[0] if reached else None,
            curve=curve,
            bytes_per_update=_traffic(outcome.tasks, updates),
            seconds=outcome.timings_s["total"],
        ),
    )


def _curve(entries: Sequence[Entry]) -> tuple[tuple[float, float], ...]:
    """(seconds, accuracy) of each checkpoint, by when it was written; it is scored later."""
    start = next((entry.time for entry in entries if entry.event == "step"), None)
    if start is None:
        return ()
    points = [
        (round(float(entry.fields.get("written", entry.time)) - start, 2),
         float(entry.fields["accuracy"]))
        for entry in entries
        if entry.event == "evaluation" and "accuracy" in entry.fields
    ]  # fmt: skip
    return tuple(sorted(points))


def _traffic(tasks: Sequence[TaskOutcome], updates: int | None) -> dict[str, float]:
    """Bytes per update by role, without tasks that did not count; a restarted task counts anew."""
    traffic: dict[str, float] = {}
    for task in tasks:
        received, sent = task.rx_bytes, task.tx_bytes
        if ROLES[task.role].sidecar or received is None or sent is None or not updates:
            continue
        traffic[task.role] = traffic.get(task.role, 0.0) + (received + sent) / updates
    return traffic
