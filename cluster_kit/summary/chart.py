"""A run as pictures that GitHub and GitLab draw from text (Mermaid): tasks and loss. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from cluster_kit.engine.containers import Event
from cluster_kit.observe.progress import Entry

MOST_TASKS = 40
POINTS = 40
"""Of a line; Mermaid spreads them evenly over the axis."""


@dataclass(frozen=True)
class Span:
    """A task's container, from its start to its end: seconds since the first start of any.

    `exit_code` is None if it had not ended.
    """

    task: str
    begin: float
    end: float
    exit_code: int | None


def spans(events: Sequence[Event], order: Sequence[str] = ()) -> list[Span]:
    """Every container's life, those of a task together, tasks in this order."""
    starts = [event.time for event in events if event.action == "start"]
    if not starts:
        return []
    zero, last = min(starts), max(event.time for event in events)
    began: dict[str, float | None] = {}
    lives: dict[str, list[Span]] = {task: [] for task in order}
    for event in sorted(events, key=lambda event: event.time):
        begin = began.get(event.task)
        if event.action == "start":
            began[event.task] = event.time
            lives.setdefault(event.task, [])
        elif event.action == "die" and begin is not None:
            began[event.task] = None
            ended = Span(event.task, begin - zero, event.time - zero, event.exit_code)
            lives[event.task].append(ended)
    for task, begin in began.items():
        if begin is not None:
            lives[task].append(Span(task, begin - zero, last - zero, None))
    return [span for task in lives for span in lives[task]]


def gantt(lives: Sequence[Span], blame: str = "") -> str:
    """A lane for each task, in seconds; what failed is marked. "" if nothing has started."""
    if not lives:
        return ""
    tasks = list(dict.fromkeys(span.task for span in lives))
    shown = tasks[:MOST_TASKS]
    if blame in tasks and blame not in shown:
        shown[-1] = blame
    lines = ["gantt", "    dateFormat x", "    axisFormat %s s"]
    for task in shown:
        lines.append(f"    section {task}")
        lines += (f"    {_bar(span)}" for span in lives if span.task == task)
    return "\n".join(lines)


def _bar(span: Span) -> str:
    """A bar of at least 1 ms, which Mermaid takes in milliseconds."""
    begin = round(span.begin * 1000)
    end = max(begin + 1, round(span.end * 1000))
    if span.exit_code is None:
        return f"did not end :active, {begin}, {end}"
    kind = "done" if span.exit_code in (0, 143) else "crit"
    return f"exit {span.exit_code} :{kind}, {begin}, {end}"


def losses(entries: Sequence[Entry], leader: str) -> list[tuple[int, float]]:
    """(step, loss) as the leader reported them, of its last way through the steps."""
    found: list[tuple[int, float]] = []
    for step, loss in _reported(entries, leader):
        while found and found[-1][0] >= step:
            found.pop()
        found.append((step, loss))
    return found


def _reported(entries: Sequence[Entry], leader: str) -> Iterator[tuple[int, float]]:
    for entry in entries:
        step, loss = entry.fields.get("step"), entry.fields.get("loss")
        if entry.task != leader or not isinstance(step, int) or not isinstance(loss, int | float):
            continue
        if math.isfinite(loss):
            yield step, float(loss)


def curve(points: Sequence[tuple[int, float]]) -> str:
    """The loss over the steps; "" if there are fewer than two points."""
    if len(points) < 2:
        return ""
    first, last = points[0][0], points[-1][0]
    count = min(POINTS, last - first + 1)
    steps = [first + (last - first) * place / (count - 1) for place in range(count)]
    values = [_between(points, step) for step in steps]
    low, high = min(0.0, *values), max(values)
    top = high if high > low else low + 1.0
    return "\n".join(
        [
            "xychart-beta",
            f'    x-axis "step" {first} --> {last}',
            f'    y-axis "loss" {_figure(low)} --> {_figure(top)}',
            f"    line [{', '.join(map(_figure, values))}]",
        ]
    )


def _between(points: Sequence[tuple[int, float]], step: float) -> float:
    """The loss at a step, on the straight line between the reports before and after it."""
    for (before, low), (after, high) in pairwise(points):
        if step <= after:
            return low + (high - low) * (step - before) / (after - before)
    return points[-1][1]


def _figure(value: float) -> str:
    """With six digits, and never with an exponent, which Mermaid does not read."""
    digits = 5 - math.floor(math.log10(abs(value))) if value else 0
    text = f"{value:.{max(0, min(digits, 20))}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
