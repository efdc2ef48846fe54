"""Finds tasks that do not run although no program failed: a node is down, or a user stopped them.

Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from cluster_kit.observe import user_requests
from cluster_kit.observe.lives import Life, Lives, since_start, starts
from cluster_kit.observe.state import RunState
from cluster_kit.observe.task_view import State, is_work
from cluster_kit.observe.user_requests import Asked


def has_no_place(seen: RunState, task: str) -> bool:
    """Whether no node accepts a task that has run before, or the chosen node could not start it."""
    return bool(_unplaced(seen, task))


def node_text(seen: RunState, task: str) -> str:
    """A text that the task's node is down, and why no other node runs the task; "" if it is up."""
    node = _newest(life.lost_node for life in _current(seen, task))
    if not node:
        return ""
    why = _unplaced(seen, task)
    return f"its node {node} is down" + (f", and no other takes it: {why}" if why else "")


def node_notes(seen: RunState) -> Iterator[str]:
    """Yields a line for each node that went down, with the tasks that were on it."""
    lost = [
        (life.lost, life.lost_node, task, bool(starts(lives_of_task[place + 1 :])))
        for task, lives_of_task in seen.lives.items()
        for place, life in enumerate(lives_of_task)
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
    """What stopped a task from outside, as far as known: its node was drained, or a person did
    it."""
    node = _newest(life.drained for life in _current(seen, task))
    if node:
        return f"its node {node} is drained"
    request = _requested(seen, task)
    by = _ENDED_BY.get(request.what) if request else None
    return f"by {by} at {request.at}" if request and by else "by `docker stop`, say"


def refusal(seen: RunState, task: str) -> str:
    """Why a node could not restart a task; "" if it has run since, or if no node has tried."""
    why = _newest(life.refusal for life in _current(seen, task))
    return f"a node could not start it again: {why}" if why else ""


def ended_from_outside(seen: RunState, task: str) -> str:
    """A text that a signal from outside ended a task that does not lead, so that nothing starts it
    again; "" if it runs, or ended otherwise."""
    last = seen.lives_of(task)[-1:]
    if task == seen.leader or not any(_is_ended(life) for life in last):
        return ""
    return "it was ended from outside, by `docker kill`, say, and not started again"


def outside_notes(seen: RunState) -> list[str]:
    """A sentence for each task that a signal from outside ended before its work was done, and that
    nothing started again; `request_notes` has those for which a request was recorded."""
    until = max(seen.ends(seen.leader), default=0.0)
    return [
        f"{task} was ended from outside, {stopped_by(seen, task)}, and not started again"
        for task, lives in seen.lives.items()
        if ended_from_outside(seen, task)
        and ((lives[-1].ended or 0.0) < until or task in seen.evaluators)
        and not _has_request_note(seen, task)
    ]


def ended_by_hand(seen: RunState) -> dict[str, float]:
    """When tasks were ended that nothing starts again while the job goes on, in Unix seconds, by
    task: a signal from outside ended them, and no request was recorded."""
    if not seen.starts(seen.leader) or seen.tasks[seen.leader].state is State.ENDED:
        return {}
    return {
        task: lives[-1].ended or 0.0
        for task, lives in seen.lives.items()
        if ended_from_outside(seen, task) and _requested(seen, task) is None
    }


def _requested(seen: RunState, task: str) -> Asked | None:
    """The last request for a task since its last start; None if there was none."""
    return user_requests.last(seen.requests, task, seen.started_at(task))


def _has_request_note(seen: RunState, task: str) -> bool:
    """Whether `request_notes` has the request that ended a task's last life."""
    request = _requested(seen, task)
    return request is not None and request.what in (*user_requests.ENDS, *FROM_PAGE)


def _is_ended(life: Life) -> bool:
    return bool(life.kills) and life.ended is not None and not life.drained


def _unplaced(seen: RunState, task: str) -> str:
    lives = _current(seen, task)
    return _newest(life.homeless for life in lives) or _newest(life.refusal for life in lives)


def _current(seen: RunState, task: str) -> Lives:
    """A task's lives since its last start. They are not found by time, since the nodes' clocks set
    the times of starts."""
    return since_start(seen.lives_of(task))


def _newest(texts: Iterable[str]) -> str:
    """The last text that is not empty; "" if all are."""
    return next(reversed([text for text in texts if text]), "")


_ENDED_BY = {
    user_requests.DOWN: "`cluster-kit down`",
    user_requests.LEAVE: "the end of its `with` block",
    user_requests.END: "a person, from the page,",
}
FROM_PAGE = {
    user_requests.END: "stopped", user_requests.KILL: "killed",
    user_requests.FREEZE: "frozen", user_requests.THAW: "thawed",
}  # fmt: skip


def pending_request(seen: RunState) -> Asked | None:
    """The request because of which the leader has ended, or is about to end, temporarily.

    None if there is no request to restart or stop, if the leader has started since, or if the
    cluster is to be removed.
    """
    request = _requested(seen, seen.leader)
    return request if request and request.what in user_requests.ENDS else None


def was_asked_for(seen: RunState, task: str, moment: float) -> bool:
    """Whether a task that ended at this time, in Unix seconds, did so because of a request."""
    since = max((time for time in seen.starts(task) if time < moment), default=0.0)
    return any(
        task in one.tasks and one.what in user_requests.ENDS and since < one.time <= moment
        for one in seen.requests
    )


def away_s(seen: RunState, now: float) -> float:
    """The seconds until `now` in which the leader was not running because of requests."""
    starts = seen.starts(seen.leader)
    until: dict[float, float] = {}
    for one in seen.requests:
        if seen.leader in one.tasks and one.what in user_requests.ENDS:
            back = min((time for time in starts if time > one.time), default=now)
            until[back] = min(one.time, until.get(back, one.time))
    return sum(max(0.0, back - since) for back, since in until.items())


def request_text(one: Asked, seen: RunState) -> str:
    """A sentence about the request."""
    if one.what == user_requests.STOP:
        again = next((time for time in seen.starts(seen.leader) if time > one.time), None)
        later = "not started again" if again is None else f"started {again - one.time:.0f} s later"
        return f"the cluster was stopped at {one.at} {_how(one)}, and {later}"
    if one.what in FROM_PAGE:
        return (
            f"{one.tasks[0]} was {FROM_PAGE[one.what]} at {one.at} from the page: a person did it"
        )
    if one.what == user_requests.AWAY:
        return f"{one.tasks[0]} {_taken_away(one, seen)}"
    return f"{restarted(one, seen)} at {one.at} {_how(one)}: a user requested it"


def _how(one: Asked) -> str:
    return "from the page" if one.from_page else f"by `cluster-kit {one.what}`"


def _taken_away(one: Asked, seen: RunState) -> str:
    back = next((time for time in seen.starts(one.tasks[0]) if time > one.time), None)
    later = "did not come back" if back is None else f"came back {back - one.time:.0f} s later"
    return f"was taken away at {one.at} by the drill, and {later}"


def restarted(one: Asked, seen: RunState) -> str:
    """The text for a request to restart, such as `worker-1 was restarted`."""
    every = len(one.tasks) == len(seen.tasks) > 1
    return f"{'all tasks were' if every else f'{one.tasks[0]} was'} restarted"


def request_notes(seen: RunState) -> list[tuple[float, str]]:
    """The time of each restart and stop, and of each request from a page, and a sentence."""
    noted = (*user_requests.ENDS, *FROM_PAGE)
    return [
        (one.time, request_text(one, seen))
        for one in seen.requests
        if one.what in noted and one.tasks
    ]


def request_before_blame(seen: RunState, blame: str) -> str:
    """The request for the task that is to blame, "" if it has worked since."""
    request = user_requests.last(seen.requests, blame)
    if request is None or request.what not in user_requests.ENDS:
        return ""
    since, reporting = request.time, [blame]
    if request.what == user_requests.AWAY:
        # A worker of an all-reduce reports no steps: the leader's after its return show its work.
        since = next((time for time in seen.starts(blame) if time > since), math.inf)
        reporting = [blame, seen.leader]
    works = any(e.task in reporting and e.time > since and is_work(e) for e in seen.entries)
    return "" if works else request_text(request, seen)
