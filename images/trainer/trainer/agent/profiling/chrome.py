"""Traces of several tasks as one in Chrome's format, which Perfetto reads. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from trainer.agent.profiling.planes import Event, Trace
from trainer.agent.profiling.work import NOT_WORK, SEND, WAITING, op_of, receiver, works_of

MOST_EVENTS = 1_000_000
"""Of all tasks: Perfetto reads so many within seconds."""
HEAD, TAIL = '{"displayTimeUnit":"ms","traceEvents":[\n', "\n]}\n"


def lines_of(trace: Trace, place: int, began: int, most: int) -> Iterator[str]:
    """The events of one task, each as JSON.

    Args:
        place: of the task among all; its process is sorted by it.
        began: Unix nanoseconds at which the whole trace begins.
        most: events; the longest ones are kept.
    """
    process = place + 1
    yield _meta("process_name", process, name=trace.task)
    yield _meta("process_sort_index", process, sort_index=place)
    ahead = trace.began - began
    shortest = _shortest(trace, most)
    for number, thread in enumerate(trace.threads, 1):
        yield _meta("thread_name", process, number, name=thread.name)
        for event in thread.events:
            if event.duration >= shortest and not event.name.startswith(NOT_WORK):
                yield _line(
                    ph="X", pid=process, tid=number, name=event.name,
                    ts=(event.begin + ahead) / 1000, dur=event.duration / 1000, **_more(event),
                )  # fmt: skip
    waits = [w for w in works_of(trace) if w.kind == WAITING and w.end - w.begin >= shortest]
    for number, wait in enumerate(sorted(waits, key=lambda w: w.begin)):
        ends = {"pid": process, "tid": 0, "cat": "waiting", "id": f"{process}.{number}"}
        name = f"waits: {wait.name}"
        yield _line(ph="b", name=name, ts=(wait.begin + ahead) / 1000, **ends)
        yield _line(ph="e", name=name, ts=(wait.end + ahead) / 1000, **ends)


def _shortest(trace: Trace, most: int) -> float:
    """The shortest duration, in nanoseconds, with which few enough events are left."""
    if sum(len(thread.events) for thread in trace.threads) <= most:
        return 0.0
    durations = sorted((e.duration for t in trace.threads for e in t.events), reverse=True)
    return durations[most]


def _more(event: Event) -> dict[str, Any]:
    _, op = op_of(event.name)
    if op != SEND or "key" not in event.stats:
        return {}
    to = receiver(str(event.stats["key"]))
    return {"args": {"to": to}} if to else {}


def _meta(what: str, process: int, thread: int = 0, **args: object) -> str:
    return _line(ph="M", name=what, pid=process, tid=thread, args=args)


def _line(**values: object) -> str:
    kept = {k: round(v, 3) if isinstance(v, float) else v for k, v in values.items()}
    return json.dumps(kept, separators=(",", ":"))
