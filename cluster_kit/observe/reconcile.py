"""Reconstructs an unwatched cluster from its containers: tasks, crashed sidecars, missed events.

Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from cluster_kit.contract.endings import NOT_FAILED
from cluster_kit.contract.events import End, Ready, Start
from cluster_kit.observe import task_view
from cluster_kit.observe.progress import Entry
from cluster_kit.observe.state import CLOCK_SLACK_S, LATE_S, NOT_THERE, RunState
from cluster_kit.observe.task_view import (
    GOOD_CODES,
    State,
    Straggler,
    TaskView,
    at_its_speed,
    begins_anew,
    code_of,
    figures,
    idle,
    state_after,
)
from cluster_kit.observe.usage import of_samples, sample_of
from cluster_kit.observe.user_requests import ENDS, Asked
from cluster_kit.platforms.engine import SIDECAR, Action, Container, Event


def from_containers(
    containers: Iterable[Container],
    entries: Sequence[Entry],
    usage: Sequence[Entry] = (),
    requests: Sequence[Asked] = (),
) -> list[TaskView]:
    """The tasks of a cluster that was not watched from its start, in the order of `containers`.

    Args:
        entries: of all tasks' progress files since the containers were created, oldest first.
        usage: likewise of their usage files.
        requests: the users' requests since then.
    """
    containers = list(containers)
    leaders = {one.name for one in containers if one.leader}
    begun = [e.time for e in entries if e.task in leaders and begins_anew(e.event)]
    anew = max(begun, default=0.0)
    uses = of_samples(sample for entry in usage if (sample := sample_of(entry)))
    seen_at = {entry.task: entry.time for entry in usage}
    lag, devices = task_view.current(entries), task_view.by_task(entries)
    # Servers, and leaders, are ready; what servers do is reported by their leader.
    servers = {e.task for e in entries if isinstance(e.event, Ready)} - leaders
    wishes = [one for one in requests if one.what in ENDS]
    views = [
        _view(
            c,
            [entry for entry in entries if entry.task == c.name],
            lag.get(c.name),
            sum(c.name in one.tasks and one.time < c.started for one in wishes),
            anew if c.name in servers else math.inf,
        )
        for c in containers
    ]
    views = [
        idle(view) if view.name in servers and (view.stepped_at or math.inf) < anew else view
        for view in views
    ]
    views = [replace(view, **devices.get(view.name, {})) for view in views]
    return [
        at_its_speed(replace(view, usage=uses[view.name].now), seen_at[view.name])
        if view.name in uses and view.state not in NOT_THERE
        else view
        for view in views
    ]


def births(entries: Iterable[Entry]) -> list[float]:
    """The start times of a task's container; each is the time of the first event after the start.

    The first event of a server is `ready`, that of any other task is `start`.
    """
    entries = list(entries)
    begun = [e.time for e in entries if isinstance(e.event, Start) and e.event.attempt == 1]
    return begun or [entry.time for entry in entries if isinstance(entry.event, Ready)]


def _view(
    container: Container,
    entries: Sequence[Entry],
    straggler: Straggler | None,
    wished: int,
    anew: float,
) -> TaskView:
    """A task's view; `wished` is how often a user requested its restart, which the engine
    forgets, `anew` when the leader's program began whose steps a server makes."""
    state, exit_code = State.of_engine(container.state), container.exit_code
    newest_figures: dict[str, Any] = {}
    for entry in entries:
        if entry.time >= anew:
            anew = math.inf
            for of_the_program_before in ("own_steps", "steps_before"):
                newest_figures.pop(of_the_program_before, None)
        if entry.time >= container.started - CLOCK_SLACK_S:
            state = state_after(state, entry)
            if state is State.ENDED and exit_code in GOOD_CODES:
                exit_code = code_of(entry.event, exit_code)
        newest_figures |= figures(entry, newest_figures)
    # The engine counts a restart before it happens, and does not count restarts by `up`.
    counted = container.restarts - (state is State.RESTARTING) + wished
    return TaskView(
        name=container.name,
        role=container.role,
        ip=container.ip,
        gpus=container.gpus,
        state=state,
        exit_code=exit_code,
        restarts=max(counted, len(births(entries)) - 1),
        straggler=straggler,
        out_of_memory=container.oom,
        **newest_figures,
    )


BARE_RESTART_S = 0.1
"""The minimum seconds that an engine waits before it restarts a container."""
JUST_BEFORE_S = 0.001


def missed(seen: RunState, containers: Sequence[Container], asked: float) -> list[Event]:
    """The events that `seen` lacks according to the containers, oldest first.

    An engine keeps few events, and none from the time when it was down. The returned events can be
    older than those of `seen`: `RunState.with_missed` inserts them in order.

    Args:
        asked: the Unix time at which the containers were listed. The engine reports later events.
    """
    views = from_containers(containers, seen.entries)
    events = [
        event
        for container, view in zip(containers, views, strict=True)
        for event in _of(seen, container, view, asked)
    ]
    present = {container.name for container in containers}
    alive = [
        name
        for name, task in seen.tasks.items()
        if seen.starts(name) and task.state is not State.ENDED
    ]
    events += [Event(asked, Action.DIE, name, None) for name in alive if name not in present]
    return sorted(events, key=lambda event: event.time)


def is_told(event: Event, known: Sequence[Event]) -> bool:
    """Whether `known` already has this start or end of a container, at about the same time.

    Two starts without an end between them are the same start, reported by engine and task.
    """
    if event.action not in _LIFE:
        return event in known
    of_task = [one for one in known if one.task == event.task and one.action in _LIFE]
    others = [one.time for one in of_task if one.action != event.action]
    return any(
        not any(min(one.time, event.time) < at < max(one.time, event.time) for at in others)
        for one in of_task
        if one.action == event.action
    )


_LIFE = (Action.START, Action.DIE)


def _of(seen: RunState, container: Container, view: TaskView, asked: float) -> Iterator[Event]:
    """Yields the missed events of one container; `view` is its row in `status`."""
    name, state = container.name, seen.tasks[container.name].state
    known = seen.lives_of(name)
    starts = _starts(seen, container, view, asked)
    starts_later = max(starts, default=0.0) > seen.started_at(name)
    yield from _lives(seen, name, starts)
    if container.oom and not any(life.ooms for life in known):
        yield Event(max(container.started, container.finished), Action.OOM, name, None)
    died = any(end >= container.started for end in seen.ends(name))
    if container.exit_code is not None and not died:
        ended = max(container.started, container.finished)
        if ended < asked:
            if container.state == "exited" and seen.retries.get(name, 0) > view.restarts:
                # The engine does not restart it although it could: a user stopped it.
                yield Event(ended, Action.KILL, name, None)
            yield Event(ended, Action.DIE, name, container.exit_code)
    elif container.state == "paused" and state is not State.PAUSED:
        yield Event(asked, Action.PAUSE, name, None)
    elif container.state == "running" and state is State.PAUSED and not starts_later:
        yield Event(asked, Action.UNPAUSE, name, None)


def _starts(seen: RunState, container: Container, view: TaskView, asked: float) -> list[float]:
    """The times of a container's starts that are not known, oldest first.

    The engine reports the last start, the task reports each start after which it could write, and
    the engine's count says how many there were.
    """
    heard = seen.starts(container.name)
    times, before = list[float](), -1.0
    born_at = births([entry for entry in seen.entries if entry.task == container.name])
    for born in born_at:
        if born >= asked:
            break
        # No restart is as fast as that, and later the task has reported one.
        late = born + (LATE_S if born == born_at[-1] else BARE_RESTART_S)
        if not any(before < start <= late for start in heard):
            exact = before < container.started <= born
            times.append(container.started if exact else born)
        before = born
    ends = seen.ends(container.name)
    if ends and not any(start <= min(ends) for start in (*heard, *times)):
        times.append(min(container.created, min(ends) - BARE_RESTART_S))
    if max((*heard, *times), default=0.0) < container.started < asked:
        times.append(container.started)
    lacking = view.restarts + 1 - len(heard) - len(times) if times else 0
    # A life without an event of the task was short.
    times += [max(*heard, *times, 0.0) - BARE_RESTART_S * n for n in range(1, lacking + 1)]
    return sorted(times)


def _lives(seen: RunState, name: str, starts: Sequence[float]) -> Iterator[Event]:
    """Yields these starts, and an end before each start that follows another one.

    The exit code of a life without an `end` event is unknown.
    """
    yield from (Event(start, Action.START, name, None) for start in starts)
    ends = seen.ends(name)
    for begin, end in pairwise(sorted([*seen.starts(name), *starts])):
        if not any(begin <= ended <= end for ended in ends):
            word = _last_word(seen, name, begin, end)
            moment, code = word or (max(begin, end - JUST_BEFORE_S), None)
            yield Event(moment, Action.DIE, name, code)


def _last_word(
    seen: RunState, name: str, begin: float, end: float
) -> tuple[float, int | None] | None:
    """Time and exit code of the end that a task reported between two of its starts; None if
    none."""
    for entry in reversed(seen.entries):
        event = entry.event
        if entry.task == name and isinstance(event, End) and begin <= entry.time < end:
            return entry.time, event.exit_code if isinstance(event.exit_code, int) else None
    return None


def crashed(containers: Iterable[Container]) -> list[Container]:
    """The sidecars that have ended by themselves with an error."""
    return [
        one
        for one in containers
        if one.role == SIDECAR
        and State.of_engine(one.state) is State.ENDED
        and (one.oom or one.exit_code not in NOT_FAILED)
    ]
