"""Computes the report's lanes: what each task did over time, and marks for moments. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from cluster_kit.contract.events import (
    End,
    Epoch,
    Evaluation,
    Heard,
    Phase,
    Ready,
    Retry,
    Scoring,
    Silent,
    Start,
    Step,
    Straggling,
    Waited,
    Waiting,
)  # fmt: skip
from cluster_kit.observe.lives import Life, lives_of, starts
from cluster_kit.observe.progress import Entry, number
from cluster_kit.observe.task_view import GOOD_CODES, State, code_of, state_after
from cluster_kit.observe.user_requests import AWAY, THAW, Asked
from cluster_kit.platforms.engine import Action, Event
from cluster_kit.resolved import Cluster, Task
from cluster_kit.roles import ROLES
from cluster_kit.util.terminal import counted, rounded

ROUTINE = ("checkpoint", "epoch", "evaluation")
"""Kinds of marks that repeat during normal training."""


@dataclass(frozen=True)
class Mark:
    """Something that happened to a task at one moment, in Unix seconds."""

    kind: str
    at: float
    text: str


def marks_of(
    lives: Sequence[Life], entries: Sequence[Entry], requests: Sequence[Asked] = ()
) -> Iterator[Mark]:
    """The marks of one task, from the lives of its container and its entries.

    A consequence of one of the `requests` for the task is not a fault.
    """
    for mark in _of_container(lives):
        yield _asked_for(mark, lives, requests)
    for entry in entries:
        match entry.event:
            case Retry(attempt=number, reason=why):
                words = f"attempt {number}" + (f": {why}" if why else "")
                yield Mark("retry", entry.time, words)
            case Epoch(epoch=number):
                yield Mark("epoch", entry.time, f"epoch {number}")
            case Evaluation() as found:
                yield Mark("evaluation", entry.time, score(found))
            case Straggling(of=task):
                yield Mark("straggler", entry.time, f"{task} is a straggler")
            case End() as last if (code := code_of(last)) not in GOOD_CODES:
                yield Mark("fault", entry.time, f"its program ended for good with exit code {code}")


def _asked_for(mark: Mark, lives: Sequence[Life], requests: Sequence[Asked]) -> Mark:
    """The mark as a user's request, if it is a fault or restart that a request caused."""
    before = [one for one in requests if one.time <= mark.at]
    if mark.kind not in ("fault", "restart") or not before:
        return mark
    last = before[-1]
    begun = sum(last.time < start <= mark.at for start in starts(lives))
    # A fault belongs to the life in which it was requested, a restart is the first one after that.
    if begun > (mark.kind == "restart") or last.what == THAW:
        return mark
    by = "the drill took it away" if last.what == AWAY else f"a user requested it ({last.what})"
    return Mark("asked", mark.at, f"{mark.text}: {by}")


def _of_container(lives: Sequence[Life]) -> Iterator[Mark]:
    number = 0
    for life in lives:
        if life.began is not None:
            number += 1
            if number > 1:
                yield Mark("restart", life.began, f"start number {number}")
        yield from (Mark("fault", time, "out of memory") for time in life.ooms)
        yield from (Mark("fault", time, "killed") for time in life.kills)
        yield from (Mark("fault", time, "frozen") for time in life.pauses)
        if life.ended is not None and life.exit_code not in GOOD_CODES:
            yield Mark("fault", life.ended, f"ended with exit code {life.exit_code}")


def score(evaluation: Evaluation) -> str:
    """The result of an evaluation: `ckpt-2, accuracy 0.97, loss 0.1`."""
    scores = (
        ("accuracy", evaluation.accuracy),
        ("map 50", evaluation.map_50),
        ("map", evaluation.map),
        ("loss", number(evaluation.loss)),
    )
    shown = [f"{name} {rounded(value)}" for name, value in scores if value is not None]
    return ", ".join([evaluation.checkpoint or "", *shown]).strip(", ")


STARTING = "starting"


@dataclass(frozen=True)
class Span:
    """A state of a task, from `begin` to `end` in Unix seconds."""

    state: str
    begin: float
    end: float
    text: str = ""


@dataclass(frozen=True)
class Lane:
    """The lane of one task: `spans` follow each other, `over` lie above them (silent, waiting)."""

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
        events, entries: those of the run, oldest first.
        end: the time of the last observation, Unix seconds.
        requests: the users' requests, such as a restart, which are not faults.
    """
    leader = cluster.leader.name
    task_entries = {task.name: [entry for entry in entries if entry.task == task.name]
            for task in cluster.tasks}  # fmt: skip
    happened = {task.name: [event for event in events if event.task == task.name]
                for task in cluster.tasks}  # fmt: skip
    lives = lives_of(events)
    servers = {task.name for task in cluster.tasks if not task.runs_program}
    changes = {**task_entries, leader: _coordinating(leader, entries, servers)}
    states = {name: tuple(_states(happened[name], changes[name], end)) for name in changes}
    training = [span for span in states[leader] if span.state == State.TRAINING]
    begun = [span for span in states[leader] if span.state not in (STARTING, State.READY)]
    lanes = {}
    for task in cluster.tasks:
        spans = states[task.name]
        if task.runs_program and task.name != leader:
            spans = tuple(_unreported(spans))
        elif task.name == leader and happened[leader] and not training:
            spans = tuple(_without_steps(spans, happened[leader]))
        if not task.runs_program:
            spans = _while(spans, begun)
            if ROLES[task.role].leads:
                spans = _trained(spans, training)
        over = [*_silences(task, lives.get(task.name, ()), entries, end)]
        if task.name == leader:
            over += _waits(task_entries[leader], end)
        task_requests = [one for one in requests if task.name in one.tasks]
        unsorted = marks_of(lives.get(task.name, ()), task_entries[task.name], task_requests)
        marks = tuple(sorted(unsorted, key=lambda mark: mark.at))
        lanes[task.name] = Lane(spans, tuple(over), marks)
    return lanes


def _states(events: Sequence[Event], entries: Sequence[Entry], end: float) -> Iterator[Span]:
    """The task's states; the time in which its container did not run is left out."""
    word, before, since = "", "", 0.0
    changes: list[tuple[float, Event | Entry]] = [
        *((e.time, e) for e in events),
        *((e.time, e) for e in entries),
    ]
    for moment, change in sorted(changes if events else [], key=lambda pair: pair[0]):
        new = _heard(word, change) if isinstance(change, Entry) else _seen(word, change, before)
        if new == word:
            continue
        if word and moment > since:
            yield Span(word, since, moment)
        word, before, since = new, word, moment
    if word and end > since:
        yield Span(word, since, end)


def _seen(word: str, event: Event, before: str) -> str:
    """The state after an event of the container; "" if the container does not run."""
    match event.action:
        case Action.CREATE:
            return STARTING
        case Action.START:  # a busy engine is behind the task's first report
            return word or STARTING
        case Action.PAUSE:
            return State.PAUSED
        case Action.UNPAUSE:
            return before or STARTING
        case Action.DIE:
            return ""
    return word


def _heard(word: str, entry: Entry) -> str:
    """The state after a task's own event; its last events can arrive after its container's end,
    its first ones before the start of its next life."""
    if not word and not isinstance(entry.event, Ready):
        return ""
    if word == State.PAUSED:  # the leader reports the steps of its servers, which are those before
        return word
    match entry.event:
        case Start() | Retry():
            return STARTING
        case Ready():
            return State.READY if word in ("", STARTING) else word
        case Step():
            return State.TRAINING
        case Epoch():  # reported at its end, even if another state has begun since
            return State.TRAINING if word in (STARTING, State.READY) else word
        case Evaluation() | Scoring():
            return state_after(State.RUNNING, entry)
        case Phase(name=name):
            return str(name)
        case End(stays=True):
            return ""
    return word


def _unreported(spans: Sequence[Span]) -> Iterator[Span]:
    """The spans of a program that need not report anything: a life without any report is running,
    not starting."""
    for index, span in enumerate(spans):
        followed = index + 1 < len(spans) and spans[index + 1].begin == span.end
        yield span if followed or span.state != STARTING else replace(span, state=State.RUNNING)


def _coordinating(leader: str, entries: Sequence[Entry], servers: Set[str]) -> list[Entry]:
    """The leader's entries; it trains from the first function that it has let a worker finish.

    Its own first count comes up to two seconds later.
    """
    return [
        Entry(leader, one.time, Epoch()) if one.task in servers else one
        for one in entries
        if one.task == leader
        or (one.task in servers and isinstance(one.event, Step) and one.event.own_steps)
    ]


def _without_steps(spans: Sequence[Span], events: Sequence[Event]) -> Iterator[Span]:
    """The spans of a leader that has reported no step until its end: its program ran."""
    over = events[-1].action == Action.DIE
    for span in spans:
        yield replace(span, state=State.RUNNING) if over and span.state == State.READY else span


def _while(spans: Sequence[Span], begun: Sequence[Span]) -> tuple[Span, ...]:
    """A server's spans: it makes steps only while the leader's program has begun, else it is
    ready."""
    trains = [span for span in spans if span.state == State.TRAINING]
    others = [span for span in spans if span.state != State.TRAINING]
    ready = [replace(span, state=State.READY) for span in trains]
    lane = [*others, *_trained(ready, begun)]
    return tuple(sorted(lane, key=lambda span: span.begin))


def _trained(spans: Sequence[Span], training: Sequence[Span]) -> tuple[Span, ...]:
    """A server's spans: it trains while the leader does, else it is ready."""
    lane = []
    for span in spans:
        if span.state != State.READY:
            lane.append(span)
            continue
        at = span.begin
        for busy in training:
            begin, end = max(busy.begin, at), min(busy.end, span.end)
            if begin >= end:
                continue
            lane += [replace(span, begin=at, end=begin), Span(State.TRAINING, begin, end)]
            at = end
        lane.append(replace(span, begin=at))
    return tuple(span for span in lane if span.end > span.begin)


def _silences(
    task: Task, lives: Sequence[Life], entries: Sequence[Entry], end: float
) -> Iterator[Span]:
    """Spans from the last heartbeat to the next one, or to the task's restart."""
    since: float | None = None
    changes = [(e.time, e.event) for e in entries
            if isinstance(e.event, Silent | Heard) and e.event.of == task.name]  # fmt: skip
    begun = [(start, None) for start in starts(lives)]
    for moment, change in sorted([*changes, *begun], key=lambda pair: pair[0]):
        if isinstance(change, Silent):
            since = since or change.last_heard or moment
        elif since is not None:
            yield Span("silent", since, moment)
            since = None
    if since is not None:
        yield Span("silent", since, end)


def _waits(entries: Sequence[Entry], end: float) -> Iterator[Span]:
    """Spans in which training waits for a lost task, as the leader reports.

    A wait lasts until the leader's program ends or restarts.
    """
    since: tuple[float, str] | None = None
    for entry in entries:
        event = entry.event
        if isinstance(event, Waiting) and since is None:
            since = entry.time - (event.seconds or 0.0), f"waits for {event.of}"
        elif isinstance(event, Waited | Start | End) and since is not None:
            yield Span(State.WAITING, since[0], entry.time, since[1])
            since = None
    if since is not None:
        yield Span(State.WAITING, since[0], end, since[1])


MOST_SHOWN = 600
"""The maximum number of routine states and marks in all lanes together."""
FEWEST = 40
"""The number of states and marks that each lane may have at least."""


def thinned(lanes: Mapping[str, Lane]) -> dict[str, Lane]:
    """The lanes with about this many states and marks at most; faults are all kept."""
    many = [name for name, lane in lanes.items() if _size(lane) > FEWEST]
    most = max(FEWEST, MOST_SHOWN // max(1, len(many))) // 2
    return {
        name: Lane(_spans(lane.spans, most), lane.over, _marks(lane.marks, most))
        if name in many
        else lane
        for name, lane in lanes.items()
    }


def _size(lane: Lane) -> int:
    return len(lane.spans) + len(lane.marks)


def _marks(marks: Sequence[Mark], most: int) -> tuple[Mark, ...]:
    """The marks with some of each routine kind, at equal distances and including the last one."""
    counts = {kind: sum(mark.kind == kind for mark in marks) for kind in ROUTINE}
    of_each = max(1, most // max(1, sum(count > 0 for count in counts.values())))
    seen = dict.fromkeys(counts, 0)
    chosen = []
    for mark in marks:
        if mark.kind not in counts:
            chosen.append(mark)
            continue
        count, at = max(counts[mark.kind], of_each), seen[mark.kind]
        seen[mark.kind] += 1
        if (at + 1) * of_each // count > at * of_each // count:
            chosen.append(mark)
    return tuple(chosen)


def _spans(spans: Sequence[Span], most: int) -> tuple[Span, ...]:
    """The spans; short ones in a row become one, with the state that lasted longest."""
    if len(spans) <= most:
        return tuple(spans)
    width = (spans[-1].end - spans[0].begin) / most
    return tuple(_together(group) for group in _groups(spans, width))


def _groups(spans: Sequence[Span], width: float) -> Iterator[list[Span]]:
    """Groups of spans without gaps, each group at most `width` seconds long."""
    group: list[Span] = []
    for span in spans:
        if group and (span.end - group[0].begin > width or span.begin > group[-1].end):
            yield group
            group = []
        group.append(span)
    yield group


def _together(group: Sequence[Span]) -> Span:
    if len(group) == 1:
        return group[0]
    times: dict[str, float] = {}
    for span in group:
        times[span.state] = times.get(span.state, 0.0) + span.end - span.begin
    longest = max(times, key=lambda state: times[state])
    summary = ", ".join(f"{state} {time:.3g} s" for state, time in times.items())
    return Span(longest, group[0].begin, group[-1].end, f"{len(group)} short states: {summary}")


BROKEN, DRILL = "broken", "drill"


def lost(steps: int) -> str:
    """`1 step lost`, `3 steps lost`."""
    return f"{counted(steps, 'step')} lost"


@dataclass(frozen=True)
class Fault:
    """A fault of a drill. Times are Unix seconds; `over` is None if the fault has no end.

    `for_s` is its intended duration. Fields with seconds after the fault are None if no task
    noticed it, or if training did not continue.
    """

    number: int
    kind: str
    task: str
    at: float
    over: float | None = None
    for_s: float | None = None
    detected_after_s: float | None = None
    detected_by: str = ""
    going_on_after_s: float | None = None
    steps_lost: int | None = None

    @property
    def title(self) -> str:
        """`fault 1: freeze for 5 s`."""
        lasts = f" for {self.for_s:g} s" if self.for_s else ""
        return f"fault {self.number}: {self.kind}{lasts}"

    @property
    def text(self) -> str:
        """The title and the consequences, one line each."""
        by = f" ({self.detected_by})" if self.detected_by else ""
        detected, on = self.detected_after_s, self.going_on_after_s
        return "\n".join([
            f"{self.title}, by the drill",
            "not noticed" if detected is None else f"noticed after {detected:g} s{by}",
            "training did not continue" if on is None else f"training continued after {on:g} s",
            *([lost(self.steps_lost)] if self.steps_lost else []),
        ])  # fmt: skip

    def facts(self, began: float) -> dict[str, Any]:
        """The fault's entry in report.json: times in seconds since Unix time `began`."""
        over = None if self.over is None else round(self.over - began, 3)
        more = {key: getattr(self, key) for key in _FIGURES}
        return {"number": self.number, "kind": self.kind, "task": self.task,
                "at": round(self.at - began, 3), "over": over, **more,
                "detected_by": self.detected_by or None}  # fmt: skip


_FIGURES = ("for_s", "detected_after_s", "going_on_after_s", "steps_lost")


def faults_of(drill: object, since: float) -> list[Fault]:
    """The faults in drill.json that were injected since Unix time `since`, in order of time."""
    tables = drill.get("faults") if isinstance(drill, dict) else None
    faults = (
        [_fault(one) for one in tables if isinstance(one, dict)] if isinstance(tables, list) else []
    )
    return sorted((one for one in faults if one and one.at >= since), key=lambda one: one.at)


MOST_SENTENCES = 10


def goodput_of(drill: object) -> list[str]:
    """The sentences in drill.json about the goodput of a replayed trace; [] without one."""
    goodput = drill.get("goodput") if isinstance(drill, dict) else None
    sentences = goodput.get("sentences") if isinstance(goodput, dict) else None
    known = sentences if isinstance(sentences, list) else []
    return [one for one in known if isinstance(one, str)][:MOST_SENTENCES]


def _fault(table: Mapping[str, Any]) -> Fault | None:
    """The fault; None if it was not injected, or its time is unknown."""
    at, lost = number(table.get("injected_unix_s")), number(table.get("steps_lost"))
    if at is None:
        return None
    return Fault(
        number=int(number(table.get("number")) or 0),
        kind=str(table.get("kind")),
        task=str(table.get("task")),
        at=at,
        over=number(table.get("over_unix_s")),
        for_s=number(table.get("for")),
        detected_after_s=number(table.get("detected_after_s")),
        detected_by=str(table.get("detected_by") or ""),
        going_on_after_s=number(table.get("going_on_after_s")),
        steps_lost=None if lost is None else int(lost),
    )


def with_faults(lanes: Mapping[str, Lane], faults: Sequence[Fault], end: float) -> dict[str, Lane]:
    """The lanes with a mark at each fault, and a span for its duration.

    Args:
        end: the time of the last observation, Unix seconds.
    """
    met = dict(lanes)
    for fault in faults:
        if fault.task not in met:
            continue
        lane = met[fault.task]
        marks = sorted([*lane.marks, Mark(DRILL, fault.at, fault.text)], key=lambda mark: mark.at)
        over = min(fault.over or fault.at, end)
        spans = [Span(BROKEN, fault.at, over, fault.title)] if over > fault.at else []
        met[fault.task] = replace(lane, marks=tuple(marks), over=(*lane.over, *spans))
    return met
