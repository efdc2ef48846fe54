"""What is known of tasks whose nodes went down, are drained, or could not start them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cluster_kit.observe.state import RunState
from cluster_kit.platforms.engine import Action, Event


def has_no_place(seen: RunState, task: str) -> bool:
    """Whether no node takes a task that has run before, or the one that did could not start it."""
    return bool(_homeless(seen, task) or _refused(seen, task))


def words(seen: RunState, task: str) -> str:
    """That a task is away since its node is down, and why it is on no other; "" if it is not."""
    node = next((e.said for e in reversed(_since_start(seen, task)) if e.action == Action.LOST), "")
    if not node:
        return ""
    why = _homeless(seen, task) or _refused(seen, task)
    return f"its node {node} is down" + (f", and no other takes it: {why}" if why else "")


def notes(seen: RunState) -> Iterator[str]:
    """Yields a line for each node that went down, with the tasks that were on it."""
    lost = [(place, one) for place, one in enumerate(seen.events) if one.action == Action.LOST]
    for node in dict.fromkeys(event.said for _, event in lost):
        on_it = [(place, event.task) for place, event in lost if event.said == node]
        tasks = ", ".join(dict.fromkeys(task for _, task in on_it))
        back = [task for place, task in on_it if _started(seen.events[place + 1 :], task)]
        after = f"; started again on other nodes: {', '.join(dict.fromkeys(back))}" if back else ""
        yield f"the node {node} went down, with {tasks} on it{after}"


def stopped_by(seen: RunState, task: str) -> str:
    """Who may have stopped a task from outside: its node that is drained, or a person."""
    events = reversed(_since_start(seen, task))
    node = next((e.said for e in events if e.action == Action.KILL and e.said), "")
    return f"its node {node} is drained" if node else "by `cluster-kit down`, say"


def refusal(seen: RunState, task: str) -> str:
    """Why a node could not start a task again, "" if it has run since, or if none has tried."""
    why = _refused(seen, task)
    return f"a node could not start it again: {why}" if why else ""


def _refused(seen: RunState, task: str) -> str:
    events = _since_start(seen, task)
    return next((e.said for e in reversed(events) if e.action == Action.DIE and e.said), "")


def _homeless(seen: RunState, task: str) -> str:
    events = _since_start(seen, task)
    return next((e.said for e in reversed(events) if e.action == Action.HOMELESS), "")


def _since_start(seen: RunState, task: str) -> list[Event]:
    """A task's events after its last start."""
    events = [event for event in seen.events if event.task == task]
    starts = [place for place, event in enumerate(events) if event.action == Action.START]
    return events[starts[-1] + 1 :] if starts else events


def _started(events: Sequence[Event], task: str) -> bool:
    """Whether a task was started. Times do not tell: those of starts are of the nodes' clocks."""
    return any((event.task, event.action) == (task, Action.START) for event in events)
