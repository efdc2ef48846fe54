"""Events that nobody heard, told by what the containers are now. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cluster_kit.engine.containers import Container, Event
from cluster_kit.observe.state import RunState
from cluster_kit.observe.task_view import State, TaskView
from cluster_kit.observe.unwatched import from_containers


def missed(seen: RunState, containers: Sequence[Container], asked: float) -> list[Event]:
    """The events that bring `seen` to what the containers show, oldest first; [] if none lack.

    An engine remembers few events, and none of the time when it was down.

    Args:
        asked: the Unix time at which the containers were asked for. What happened later is told
            by the engine.
    """
    views = from_containers(containers, seen.entries)
    events = [
        event
        for container, view in zip(containers, views, strict=True)
        for event in _of(seen, container, view, asked)
    ]
    present = {container.name for container in containers}
    alive = [name for name in seen.started if seen.tasks[name].state is not State.ENDED]
    events += [Event(asked, "die", name, None) for name in alive if name not in present]
    return sorted(events, key=lambda event: event.time)


def _of(seen: RunState, container: Container, view: TaskView, asked: float) -> Iterator[Event]:
    """Yields the missed events of one container; `view` is what `status` would show of it."""
    name, state = container.name, seen.tasks[container.name].state
    known = [event for event in seen.events if event.task == name]
    starts = [event for event in known if event.action == "start"]
    if starts_later := seen.started.get(name, 0.0) < container.started < asked:
        lacking = max(1, view.restarts + 1 - len(starts))
        yield from [Event(container.started, "start", name, None)] * lacking
    if container.oom and not any(event.action == "oom" for event in known):
        yield Event(max(container.started, container.finished), "oom", name, None)
    died = any(e.action == "die" and e.time >= container.started for e in known)
    if container.exit_code is not None and not died:
        ended = max(container.started, container.finished)
        if ended < asked:
            if container.state == "exited" and seen.retries.get(name, 0) > view.restarts:
                # It does not come back although it may: it was told to stop.
                yield Event(ended, "kill", name, None)
            yield Event(ended, "die", name, container.exit_code)
    elif container.state == "paused" and state is not State.PAUSED:
        yield Event(asked, "pause", name, None)
    elif container.state == "running" and state is State.PAUSED and not starts_later:
        yield Event(asked, "unpause", name, None)
