"""What happened to a task at single moments. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cluster_kit.engine.containers import Event
from cluster_kit.observe.asked import THAW, Asked
from cluster_kit.observe.figures import number
from cluster_kit.observe.progress import Entry
from cluster_kit.observe.task_view import GOOD_CODES

ROUTINE = ("checkpoint", "epoch", "evaluation")
"""Kinds of marks that come again and again where all is well."""
SCORES = ("accuracy", "map_50", "map", "loss")


@dataclass(frozen=True)
class Mark:
    """Something that happened to a task at one moment, Unix seconds."""

    kind: str
    at: float
    text: str


def marks_of(
    events: Sequence[Event], entries: Sequence[Entry], requests: Sequence[Asked] = ()
) -> Iterator[Mark]:
    """What happened to one task, by the events of its container and its own entries.

    What follows from one of the `requests` about it is no fault.
    """
    for mark in _of_events(events):
        yield _asked_for(mark, events, requests)
    for entry in entries:
        match entry.event:
            case "retry":
                yield Mark("retry", entry.time, _attempt(entry))
            case "epoch":
                yield Mark("epoch", entry.time, f"epoch {entry.fields.get('epoch')}")
            case "evaluation":
                yield Mark("evaluation", entry.time, score(entry))
            case "straggling":
                yield Mark("straggler", entry.time, f"{entry.fields.get('of')} is a straggler")


def _asked_for(mark: Mark, events: Sequence[Event], requests: Sequence[Asked]) -> Mark:
    """The mark as one of a person's request, if it is a fault or restart that followed from one."""
    starts = [event.time for event in events if event.action == "start"]
    before = [one for one in requests if one.time <= mark.at]
    if mark.kind not in ("fault", "restart") or not before:
        return mark
    last = before[-1]
    lives = sum(last.time < start <= mark.at for start in starts)
    # A fault is of the life in which it was asked for, a restart is the first one after that.
    if lives > (mark.kind == "restart") or last.what == THAW:
        return mark
    return Mark("asked", mark.at, f"{mark.text}: a person asked for it ({last.what})")


def _attempt(entry: Entry) -> str:
    """`attempt 2: ps-0 was lost`."""
    reason = entry.fields.get("reason")
    return f"attempt {entry.fields.get('attempt')}" + (f": {reason}" if reason else "")


def _of_events(events: Sequence[Event]) -> Iterator[Mark]:
    starts = 0
    for event in events:
        match event.action:
            case "start":
                starts += 1
                if starts > 1:
                    yield Mark("restart", event.time, f"start number {starts}")
            case "oom":
                yield Mark("fault", event.time, "out of memory")
            case "kill":
                yield Mark("fault", event.time, "killed")
            case "pause":
                yield Mark("fault", event.time, "frozen")
            case "die" if event.exit_code not in GOOD_CODES:
                yield Mark("fault", event.time, f"ended with exit code {event.exit_code}")


def score(entry: Entry) -> str:
    """What an evaluation found: `ckpt-2, accuracy 0.97, loss 0.1`."""
    shown = [
        f"{key.replace('_', ' ')} {value:.4g}"
        for key in SCORES
        if (value := number(entry.fields.get(key))) is not None
    ]
    return ", ".join([str(entry.fields.get("checkpoint", "")), *shown]).strip(", ")
