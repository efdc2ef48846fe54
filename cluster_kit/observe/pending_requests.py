"""What of a run has happened because a person asked for it: no crash, and nobody's fault. Pure."""

from __future__ import annotations

from cluster_kit.observe import user_requests
from cluster_kit.observe.state import RunState
from cluster_kit.observe.task_view import is_work
from cluster_kit.observe.user_requests import Asked

FROM_PAGE = {
    user_requests.END: "stopped", user_requests.KILL: "killed",
    user_requests.FREEZE: "frozen", user_requests.THAW: "thawed",
}  # fmt: skip


def pending(seen: RunState) -> Asked | None:
    """The restart or stop for which the leader has ended, or is about to, but only for a while.

    None if nobody has asked for one, or it has been started again since, or is to be removed.
    """
    one = user_requests.last(seen.requests, seen.leader)
    if one is None or one.what not in user_requests.ENDS:
        return None
    return one if one.time > seen.started_at(seen.leader) else None


def is_of(seen: RunState, task: str, moment: float) -> bool:
    """Whether a task that ended at this time, in Unix seconds, did so because a person asked."""
    since = max((time for time in seen.starts(task) if time < moment), default=0.0)
    return any(
        task in one.tasks and one.what in user_requests.ENDS and since < one.time <= moment
        for one in seen.requests
    )


def away_s(seen: RunState, now: float) -> float:
    """For how many seconds the leader was not running because a person asked, until `now`."""
    starts = seen.starts(seen.leader)
    until: dict[float, float] = {}
    for one in seen.requests:
        if seen.leader in one.tasks and one.what in user_requests.ENDS:
            back = min((time for time in starts if time > one.time), default=now)
            until[back] = min(one.time, until.get(back, one.time))
    return sum(max(0.0, back - since) for back, since in until.items())


def words(one: Asked, seen: RunState) -> str:
    """A sentence about what was asked."""
    every = len(one.tasks) == len(seen.tasks)
    if one.what == user_requests.STOP:
        again = next((time for time in seen.starts(seen.leader) if time > one.time), None)
        later = "not started again" if again is None else f"started {again - one.time:.0f} s later"
        return f"the cluster was stopped at {one.at} by `cluster-kit stop`, and {later}"
    if one.what in FROM_PAGE:
        return (
            f"{one.tasks[0]} was {FROM_PAGE[one.what]} at {one.at} from the page: a person did it"
        )
    whom = "all tasks were" if every and len(one.tasks) > 1 else f"{one.tasks[0]} was"
    return f"{whom} restarted at {one.at} by `cluster-kit restart`: a person asked for it"


def notes(seen: RunState) -> list[str]:
    """A sentence for each restart and stop, and for what was done from a page, oldest first."""
    told = (*user_requests.ENDS, *FROM_PAGE)
    return [words(one, seen) for one in seen.requests if one.what in told and one.tasks]


def before_blame(seen: RunState, blame: str) -> str:
    """What a person had asked of the task that is to blame, "" if it has worked since."""
    one = user_requests.last(seen.requests, blame)
    if one is None or one.what not in user_requests.ENDS:
        return ""
    works = any(e.task == blame and e.time > one.time and is_work(e) for e in seen.entries)
    return "" if works else words(one, seen)
