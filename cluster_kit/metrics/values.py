"""The values of a run's metrics, from what was seen of it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cluster_kit.metrics.facts import RunFacts, rows
from cluster_kit.metrics.of_task import Named, Seen, known
from cluster_kit.metrics.table import PREFIX
from cluster_kit.metrics.tally import Tally
from cluster_kit.observe.figures import number

_BY_STEP = re.compile(r"(?:model|manual)\.ckpt-(\d+)")


@dataclass(frozen=True)
class Value:
    """A sample: the full name of its metric, its labels, the number."""

    name: str
    labels: Mapping[str, str]
    value: float


def values_of(run: RunFacts, tallies: Mapping[str, Tally], now: float) -> Iterator[Value]:
    """Yields all values of a run.

    Args:
        tallies: by task.
        now: Unix seconds.
    """
    outcomes = {row.get("name"): row for row in rows(run.outcome)}
    up = False
    for task in run.tasks:
        seen = Seen(run, task, tallies[task.name], outcomes.get(task.name, {}), now)
        labels = {"cluster": run.cluster, "run": run.run, "role": task.role, "task": task.name,
                  "index": str(task.index)}  # fmt: skip
        up = up or seen.up
        for name, more, value in seen.values():
            yield Value(f"{PREFIX}task_{name}", {**labels, **more}, value)
    labels = {"cluster": run.cluster, "run": run.run}
    for name, more, value in _of_run(run, tallies, now, up):
        yield Value(f"{PREFIX}run_{name}", {**labels, **more}, value)


def _of_run(run: RunFacts, tallies: Mapping[str, Tally], now: float, up: bool) -> Iterator[Named]:
    outcome, leader = run.outcome, tallies.get(run.leader)
    timings = _numbers(outcome.get("timings_s"))
    began = run.since
    yield "info", {"image": run.image, "style": run.style, "kit": run.kit}, 1
    yield "up", {}, up and not outcome
    yield from known(
        ("start_time_seconds", began),
        ("duration_seconds", timings.pop("total", None) if outcome else began and now - began),
        ("target_steps", leader.target if leader else None),
        ("retries_total", leader.retries if leader else None),
    )
    yield from (("phase_seconds", {"phase": name}, value) for name, value in timings.items())
    if outcome:
        yield from _ended(outcome)
    if run.checkpoint is not None:
        at, name = run.checkpoint
        named = _BY_STEP.fullmatch(name)
        step = int(named[1]) if named else leader.step_at(at) if leader else None
        yield from known(("checkpoint_time_seconds", at), ("checkpoint_step", step))
    reported: dict[str, float] = {}
    for tally in tallies.values():
        reported |= tally.metrics
    reported |= _numbers(outcome.get("metrics"))
    yield from (("metric", {"metric": name}, value) for name, value in reported.items())


def _ended(outcome: Mapping[str, Any]) -> Iterator[Named]:
    success, reason = bool(outcome.get("success")), str(outcome.get("reason") or "")
    verdict = "success" if success else "stopped" if reason == "stopped" else "failed"
    blame = str(outcome.get("blame") or "")
    yield "success", {}, success
    yield from known(("exit_code", number(outcome.get("exit_code"))))
    yield "verdict_info", {"verdict": verdict, "reason": reason, "blame": blame}, 1


def _numbers(told: Any) -> dict[str, float]:
    items = told.items() if isinstance(told, dict) else ()
    return {str(name): value for name, one in items if (value := number(one)) is not None}
