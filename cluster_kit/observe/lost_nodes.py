"""What is known of tasks whose nodes went down, are drained, or could not start them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cluster_kit.observe.lives import Lives, since_start, starts
from cluster_kit.observe.state import RunState


def has_no_place(seen: RunState, task: str) -> bool:
    """Whether no node takes a task that has run before, or the one that did could not start it."""
    return bool(_unplaced(seen, task))


def words(seen: RunState, task: str) -> str:
    """That a task is away since its node is down, and why it is on no other; "" if it is not."""
    node = _newest(life.lost_node for life in _current(seen, task))
    if not node:
        return ""
    why = _unplaced(seen, task)
    return f"its node {node} is down" + (f", and no other takes it: {why}" if why else "")


def notes(seen: RunState) -> Iterator[str]:
    """Yields a line for each node that went down, with the tasks that were on it."""
    lost = [
        (life.lost, life.lost_node, task, bool(starts(own[place + 1 :])))
        for task, own in seen.lives.items()
        for place, life in enumerate(own)
        if life.lost is not None
    ]
    lost.sort(key=lambda one: one[0])
    for node in dict.fromkeys(node for _, node, _, _ in lost):
        on_it = [(task, is_back) for _, of, task, is_back in lost if of == node]
        tasks = ", ".join(dict.fromkeys(task for task, _ in on_it))
        back = [task for task, is_back in on_it if is_back]
        after = f"; started again on other nodes: {', '.join(dict.fromkeys(back))}" if back else ""
        yield f"the node {node} went down, with {tasks} on it{after}"


def stopped_by(seen: RunState, task: str) -> str:
    """Who may have stopped a task from outside: its node that is drained, or a person."""
    node = _newest(life.drained for life in _current(seen, task))
    return f"its node {node} is drained" if node else "by `cluster-kit down`, say"


def refusal(seen: RunState, task: str) -> str:
    """Why a node could not start a task again, "" if it has run since, or if none has tried."""
    why = _newest(life.refusal for life in _current(seen, task))
    return f"a node could not start it again: {why}" if why else ""


def _unplaced(seen: RunState, task: str) -> str:
    lives = _current(seen, task)
    return _newest(life.homeless for life in lives) or _newest(life.refusal for life in lives)


def _current(seen: RunState, task: str) -> Lives:
    """A task's lives since its last start. Times do not tell which: those of starts are of the
    nodes' clocks."""
    return since_start(seen.lives_of(task))


def _newest(texts: Iterable[str]) -> str:
    """The last one that is not empty, "" if all are."""
    return next(reversed([text for text in texts if text]), "")
