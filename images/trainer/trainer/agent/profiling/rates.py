"""Steps per second before a profile and during it, by what programs report. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

BEFORE_S = 10.0
Point = tuple[float, float]


def points_of(events: Iterable[Mapping[str, Any]]) -> list[Point]:
    """(Unix seconds, step) of the `step` events, by time; of a run that began anew, the last."""
    found: list[Point] = []
    for event in events:
        at, step = event.get("time"), event.get("step")
        if event.get("event") != "step" or not _number(at) or not _number(step):
            continue
        if found and step < found[-1][1]:
            found = []
        found.append((float(at), float(step)))
    return found


def rate(points: Sequence[Point], begin: float, end: float) -> float | None:
    """Steps per second in a period, None if no two reports are far enough apart to say.

    Between two reports steps are taken to be even.
    """
    first, last = _at(points, begin), _at(points, end)
    if first is None or last is None or last[0] - first[0] < (end - begin) / 2:
        return None
    return max(0.0, (last[1] - first[1]) / (last[0] - first[0]))


def overhead(points: Sequence[Point], began: float, seconds: float) -> dict[str, float | None]:
    """Steps per second before and during."""
    known = [at for at, _ in points if at < began]
    before = rate(points, max(began - BEFORE_S, known[0]), known[-1]) if len(known) > 1 else None
    during = rate(points, began, began + seconds)
    return {"before": _short(before), "during": _short(during)}


def _at(points: Sequence[Point], moment: float) -> Point | None:
    """The step at a moment: on the line between two reports, or the nearest report inside."""
    for place in range(len(points) - 1):
        (begin, low), (end, high) = points[place : place + 2]
        if begin <= moment <= end and end > begin:
            return moment, low + (high - low) * (moment - begin) / (end - begin)
    return None


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 2)


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
