"""Computes where a task's time goes, its longest ops, and the speed before and during a trace.

Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from trainer.agent.profiling.traces import (
    COMPUTE,
    IDLE,
    ORDER,
    RECEIVE,
    WAITING,
    Trace,
    Work,
    works_of,
)
from trainer.agent.progress_file import Entry
from trainer.contract.events import Step

MOST_OPS = 10
_RUNS = ("train", "SessionRun", "RunGraph")
_FUNCTION = "EagerExecute"


def task_facts(trace: Trace) -> dict[str, Any]:
    """A task's row: seconds, runs, the share of the time in each kind of work, longest ops."""
    works = works_of(trace)
    length = max(trace.duration, 1.0)
    times = exclusive(works, length)
    return {
        "seconds": round(length / 1e9, 3),
        "runs": runs_of(trace),
        "shares": {kind: round(spent / length, 4) for kind, spent in times.items()},
        "waits_for": waits_for(trace.task, works),
        "longest_ops": longest(work for work in works if work.kind == COMPUTE),
        "longest_waits": longest(work for work in works if work.kind == WAITING),
    }


def exclusive(works: Iterable[Work], length: float) -> dict[str, float]:
    """The time of each kind of work in which no earlier kind in ORDER was under way; the sum is
    `length`.

    So a wait during which the task computes counts as computation.
    """
    changes: list[tuple[float, int, int]] = []
    for work in works:
        begin, end = max(0.0, work.begin), min(length, work.end)
        if end > begin:
            rank = ORDER.index(work.kind)
            changes += [(begin, rank, 1), (end, rank, -1)]
    changes.sort()
    spent = dict.fromkeys((*ORDER, IDLE), 0.0)
    going = [0] * len(ORDER)
    last = 0.0
    for at, rank, change in [*changes, (length, 0, 0)]:
        kind = next((ORDER[p] for p, count in enumerate(going) if count), IDLE)
        spent[kind] += at - last
        going[rank] += change
        last = at
    return spent


def runs_of(trace: Trace) -> int:
    """The number of runs of a step, a graph or a function; 0 if none was run."""
    counts: dict[str, int] = defaultdict(int)
    for thread in trace.threads:
        for event in thread.events:
            if event.name in _RUNS:
                counts[event.name] += 1
            elif event.name == _FUNCTION and event.stats.get("is_func"):
                counts[_FUNCTION] += 1
            elif event.name.startswith("EagerLocalExecuteAsync: __inference_"):
                counts["part"] += 1
    return next((counts[name] for name in (*_RUNS, _FUNCTION, "part") if counts[name]), 0)


def waits_for(task: str, works: Sequence[Work]) -> str:
    """A text about what a task waits for: gradients in a ps, variables in others; "" if it does not
    wait."""
    waits = [work for work in works if work.kind == WAITING]
    if not waits:
        return ""
    if any(work.op != RECEIVE for work in waits):
        return "the others of an all-reduce"
    return "gradients" if task.startswith("ps-") else "variables"


def longest(works: Iterable[Work]) -> list[dict[str, Any]]:
    """The ops with the longest total time, the longest first."""
    totals: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0, 0.0])
    for work in works:
        entry = totals[work.name, work.op]
        entry[0] += 1
        entry[1] += work.end - work.begin
    ordered = sorted(totals.items(), key=lambda item: (-item[1][1], item[0]))
    return [
        {"name": name, "op": op, "count": int(count), "ms": round(total / 1e6, 3)}
        for (name, op), (count, total) in ordered[:MOST_OPS]
    ]


BEFORE_S = 10.0
Point = tuple[float, float]


def points_of(entries: Iterable[Entry]) -> list[Point]:
    """(Unix seconds, step) of the `step` events, by time; only those after the last restart."""
    points: list[Point] = []
    for entry in entries:
        at, step = entry.time, entry.event.step if isinstance(entry.event, Step) else None
        if at is None or step is None:
            continue
        if points and step < points[-1][1]:
            points = []
        points.append((float(at), float(step)))
    return points


def steps_per_s(points: Sequence[Point], begin: float, end: float) -> float | None:
    """Steps per second in a period, None if no two reports are far enough apart to say.

    Between two reports the speed is assumed to be constant.
    """
    first, last = _at(points, begin), _at(points, end)
    if first is None or last is None or last[0] - first[0] < (end - begin) / 2:
        return None
    return max(0.0, (last[1] - first[1]) / (last[0] - first[0]))


def steps_before_and_during(
    points: Sequence[Point], began: float, seconds: float
) -> dict[str, float | None]:
    """Steps per second before and during."""
    known = [at for at, _ in points if at < began]
    before = (
        steps_per_s(points, max(began - BEFORE_S, known[0]), known[-1]) if len(known) > 1 else None
    )
    during = steps_per_s(points, began, began + seconds)
    return {"before": _short(before), "during": _short(during)}


def _at(points: Sequence[Point], moment: float) -> Point | None:
    """The step at a moment: interpolated between two reports, or that of the nearest report inside
    the period."""
    for index in range(len(points) - 1):
        (begin, low), (end, high) = points[index : index + 2]
        if begin <= moment <= end and end > begin:
            return moment, low + (high - low) * (moment - begin) / (end - begin)
    return None


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
