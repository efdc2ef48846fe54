"""What a picture of a drill shows, in seconds since the job was ready. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cluster_kit.drill.measure import Result
from cluster_kit.drill.triggers import ready_at, starts_of, steps
from cluster_kit.observe.heartbeats import HEARD, SILENT
from cluster_kit.observe.state import RunState

Span = tuple[float, float]


@dataclass(frozen=True)
class Lane:
    """One task: when its container ran, and when it was called silent."""

    task: str
    ran: tuple[Span, ...]
    silent: tuple[Span, ...]


@dataclass(frozen=True)
class Lanes:
    """The whole picture; `trained` are (seconds, step), one line for each start of the program."""

    lanes: tuple[Lane, ...]
    trained: tuple[tuple[tuple[float, int], ...], ...]
    faults: tuple[Result, ...]
    end: float


def lanes_of(seen: RunState, faults: Sequence[Result]) -> Lanes | None:
    """The picture of a run; None if the job was never ready."""
    ready = ready_at(seen)
    if ready is None:
        return None
    end = max([*(entry.time for entry in seen.entries), *(event.time for event in seen.events)])

    def lane(task: str) -> Lane:
        ran, silent = _ran(seen, task, end), _silent(seen, task, end)
        return Lane(task, _shifted(ran, ready), _shifted(silent, ready))

    shown = tuple(fault for fault in faults if fault.injected_at is not None)
    return Lanes(tuple(map(lane, seen.tasks)), _trained(seen, ready), shown, end - ready)


def _shifted(spans: Sequence[Span], zero: float) -> tuple[Span, ...]:
    return tuple((begin - zero, end - zero) for begin, end in spans)


def _ran(seen: RunState, task: str, end: float) -> list[Span]:
    """From each start of its container to the end of that."""
    return _spans(
        [(e.time, e.action == "start") for e in seen.events
         if e.task == task and e.action in ("start", "die")], end
    )  # fmt: skip


def _silent(seen: RunState, task: str, end: float) -> list[Span]:
    """From when it was called silent to when it was heard, or started again."""
    told = [(e.time, e.event == SILENT) for e in seen.entries
            if e.event in (SILENT, HEARD) and e.fields.get("of") == task]  # fmt: skip
    started = [(e.time, False) for e in seen.events if (e.task, e.action) == (task, "start")]
    return _spans(sorted([*told, *started]), end)


def _spans(changes: Sequence[tuple[float, bool]], end: float) -> list[Span]:
    spans: list[Span] = []
    began: float | None = None
    for moment, begins in changes:
        if begins and began is None:
            began = moment
        elif not begins and began is not None:
            spans.append((began, moment))
            began = None
    return spans if began is None else [*spans, (began, end)]


def _trained(seen: RunState, ready: float) -> tuple[tuple[tuple[float, int], ...], ...]:
    """The leader's reports, cut where its program was started again, or went back by itself."""
    starts, lines = starts_of(seen), list[list[tuple[float, int]]]()
    earlier, last = 0, 0
    for moment, step in steps(seen):
        attempt = sum(start <= moment for start in starts)
        if not lines or attempt != earlier or step < last:
            lines.append([])
        lines[-1].append((moment - ready, step))
        earlier, last = attempt, step
    return tuple(map(tuple, lines))
