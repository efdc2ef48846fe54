"""What each task did when: its lane over time, and the marks on it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from cluster_kit.cluster import Cluster, Task
from cluster_kit.engine.containers import Event
from cluster_kit.observe.asked import Asked
from cluster_kit.observe.figures import number
from cluster_kit.observe.progress import Entry
from cluster_kit.observe.silences import HEARD, SILENT
from cluster_kit.observe.task_view import State
from cluster_kit.report.marks import Mark, marks_of, score
from cluster_kit.roles import ROLES

STARTING, SERVING, WAITING = "starting", "serving", "waiting"


@dataclass(frozen=True)
class Span:
    """A state of a task, from `begin` to `end` in Unix seconds."""

    state: str
    begin: float
    end: float
    text: str = ""


@dataclass(frozen=True)
class Lane:
    """One task's: `spans` follow each other, `over` lie above them (silent, waiting)."""

    spans: tuple[Span, ...]
    over: tuple[Span, ...]
    marks: tuple[Mark, ...]


def lanes_of(
    cluster: Cluster,
    events: Sequence[Event],
    entries: Sequence[Entry],
    end: float,
    requests: Sequence[Asked] = (),
) -> dict[str, Lane]:
    """Each task's lane, by name.

    Args:
        events, entries: of the run, oldest first.
        end: of what was seen, Unix seconds.
        requests: what persons asked, which is no fault.
    """
    leader = cluster.leader.name
    told = {task.name: [entry for entry in entries if entry.task == task.name]
            for task in cluster.tasks}  # fmt: skip
    happened = {task.name: [event for event in events if event.task == task.name]
                for task in cluster.tasks}  # fmt: skip
    states = {name: tuple(_states(happened[name], told[name], end)) for name in told}
    training = [span for span in states[leader] if span.state == State.TRAINING]
    lanes = {}
    for task in cluster.tasks:
        spans = states[task.name]
        if ROLES[task.role].sidecar:
            spans = _scoring(spans, told[task.name])
        elif task.serves:
            spans = _served(spans, training, State.TRAINING if ROLES[task.role].leads else SERVING)
        over = [*_silences(task, happened[task.name], entries, end)]
        if task.name == leader:
            over += _waits(told[leader], end)
        own = [one for one in requests if task.name in one.tasks]
        marks = tuple(sorted(marks_of(happened[task.name], told[task.name], own),
                             key=lambda mark: mark.at))  # fmt: skip
        lanes[task.name] = Lane(spans, tuple(over), marks)
    return lanes


def _states(events: Sequence[Event], entries: Sequence[Entry], end: float) -> Iterator[Span]:
    """The task's own states; the time in which its container did not run is left out."""
    word, before, since = "", "", 0.0
    changes: list[tuple[float, Event | Entry]] = [
        *((e.time, e) for e in events),
        *((e.time, e) for e in entries),
    ]
    for moment, change in sorted(changes, key=lambda pair: pair[0]):
        new = _heard(word, change) if isinstance(change, Entry) else _seen(word, change, before)
        if new == word:
            continue
        if word and moment > since:
            yield Span(word, since, moment)
        word, before, since = new, word, moment
    if word and end > since:
        yield Span(word, since, end)


def _seen(word: str, event: Event, before: str) -> str:
    """The state after an event of the container; "" if it does not run."""
    match event.action:
        case "create" | "start":
            return STARTING
        case "pause":
            return State.PAUSED
        case "unpause":
            return before or STARTING
        case "die":
            return ""
    return word


def _heard(word: str, entry: Entry) -> str:
    """The state after what the task itself said; its last words come after its container's end."""
    if not word:
        return ""
    match entry.event:
        case "start" | "retry":
            return STARTING
        case "ready":
            return State.READY if word == STARTING else word
        case "step":
            return State.TRAINING
        case "epoch":  # told at its end, whatever has begun since
            return State.TRAINING if word in (STARTING, State.READY) else word
        case "evaluation":
            return State.SCORING
        case "phase":
            return str(entry.fields.get("name"))
    return word


def _served(spans: Sequence[Span], training: Sequence[Span], word: str) -> tuple[Span, ...]:
    """A server's spans: while the leader trains it has work, else it is ready."""
    found = []
    for span in spans:
        if span.state != State.READY:
            found.append(span)
            continue
        at = span.begin
        for busy in training:
            begin, end = max(busy.begin, at), min(busy.end, span.end)
            if begin >= end:
                continue
            found += [replace(span, begin=at, end=begin), Span(word, begin, end)]
            at = end
        found.append(replace(span, begin=at))
    return tuple(span for span in found if span.end > span.begin)


def _scoring(spans: Sequence[Span], entries: Sequence[Entry]) -> tuple[Span, ...]:
    """An evaluator's spans: it scores from when a checkpoint was written, else waits for one."""
    scores = [(e, number(e.fields.get("written"))) for e in entries if e.event == "evaluation"]
    found = []
    for span in spans:
        at, first = span.begin, True
        for entry, written in scores:
            begin = max(at if written is None else written, at)
            if not at <= entry.time <= span.end:
                continue
            found.append(Span(STARTING if first and span.state == STARTING else WAITING, at, begin))
            found.append(Span(State.SCORING, begin, entry.time, score(entry)))
            at, first = entry.time, False
        word = span.state if first else WAITING
        found.append(Span(word, at, span.end))
    return tuple(span for span in found if span.end > span.begin)


def _silences(
    task: Task, events: Sequence[Event], entries: Sequence[Entry], end: float
) -> Iterator[Span]:
    """From the last time it was heard, to when it was heard again or started again."""
    since: float | None = None
    told = [(e.time, e) for e in entries if e.fields.get("of") == task.name
            and e.event in (SILENT, HEARD)]  # fmt: skip
    starts = [(e.time, e) for e in events if e.action == "start"]
    for moment, change in sorted([*told, *starts], key=lambda pair: pair[0]):
        if isinstance(change, Entry) and change.event == SILENT:
            last = number(change.fields.get("last_heard"))
            since = since or last or moment
        elif since is not None:
            yield Span("silent", since, moment)
            since = None
    if since is not None:
        yield Span("silent", since, end)


def _waits(entries: Sequence[Entry], end: float) -> Iterator[Span]:
    """Training that waits for a task that was lost, as the leader says."""
    since: tuple[float, str] | None = None
    for entry in entries:
        if entry.event == "waiting" and since is None:
            begin = entry.time - (number(entry.fields.get("seconds")) or 0.0)
            since = begin, f"waits for {entry.fields.get('of')}"
        elif entry.event == "waited" and since is not None:
            yield Span(WAITING, since[0], entry.time, since[1])
            since = None
    if since is not None:
        yield Span(WAITING, since[0], end, since[1])
