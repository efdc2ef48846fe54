"""Measures how each fault was detected and overcome, from the events of the run. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf

from cluster_kit.contract.events import Failure, Retry, Silent, Step, Unanswered, name_of
from cluster_kit.drill.fault_plan import (
    Injected,
    Planned,
    ended_at,
    over_at,
    progress,
    ready_at,
    starts_of,
    steps,
)
from cluster_kit.drill.scenario_file import KINDS
from cluster_kit.observe.progress import Entry
from cluster_kit.observe.state import CLOCK_SLACK_S, RunState
from cluster_kit.platforms.engine import Action

UNDER_WAY_S = 1.0
PAUSE_S = 3.0
"""Seconds between two reports of a program, about."""
COUNTED_LATE_S = 3.5
"""Seconds by which the reports of steps that the kit counts are late, at most, about."""


@dataclass(frozen=True)
class Result:
    """A fault and its consequences; None for a consequence that did not happen or is unknown.

    `injected_at` is in seconds since the job was ready, `step` the last one reported before the
    fault. `detected_after` and `going_on_after` are seconds since the fault, `steps_lost` are
    counted between two reports: programs report about once a second. `steps_at_risk` are those
    since the last checkpoint before the fault: with checkpoints that work, no more can be lost.
    """

    fault: Planned
    injected_at: float | None = None
    step: int | None = None
    detected_after: float | None = None
    detected_by: str = ""
    going_on_after: float | None = None
    steps_lost: int | None = None
    steps_at_risk: int | None = None
    restarts: int = 0
    why_not: str = ""
    at_end: bool = False
    """Whether the job ended successfully after the fault without a further step."""
    before_end: float | None = None
    """Seconds from the fault to the leader's successful end; None if it did not succeed."""
    time: float | None = None
    """The Unix times of the fault and of its end; None for the end if it has no duration."""
    over: float | None = None


def results(
    faults: Sequence[Planned],
    done: Sequence[Injected],
    refusals: Mapping[Planned, str],
    seen: RunState,
) -> list[Result]:
    """The result of each fault, in the scenario's order."""
    injected = {one.fault: one for one in done}
    return [
        _result(injected[fault], done, seen)
        if fault in injected
        else Result(fault, why_not=refusals.get(fault, "the job ended before"))
        for fault in faults
    ]


def _result(one: Injected, done: Sequence[Injected], seen: RunState) -> Result:
    task = one.fault.task
    job_end, well_at = ended_at(seen) or inf, _well_at(seen)
    later = [other for other in done if other.time > one.time]
    next_of_task = min((o.time for o in later if o.fault.task == task), default=job_end)
    next_of_any = min((o.time for o in later), default=job_end)
    detection = _detected(one, seen, next_of_task, next_of_any)
    detected, by = detection or (None, "")
    before = [step for moment, step in steps(seen) if moment <= one.time]
    went_on, lost, reached = _going_on(
        seen, one.time, max(one.time, detected or 0.0), next_of_any, max(before, default=0)
    )
    saved = [step for moment, step in steps(seen) if moment <= (one.saved_at or 0.0)]
    starts = [start for start in seen.starts(task) if one.time < start <= next_of_task]
    ready = ready_at(seen)
    return Result(
        one.fault,
        None if ready is None else _rounded(one.time - ready),
        before[-1] if before else None,
        None if detected is None else _rounded(max(0.0, detected - one.time)),
        by,
        None if went_on is None else _rounded(went_on - one.time),
        lost,
        max(0, reached - (saved[-1] if saved else 0)),
        len(starts),
        at_end=went_on is not None and not any(moment >= went_on for moment, _ in steps(seen)),
        before_end=None if well_at == inf else _rounded(well_at - one.time),
        time=one.time,
        over=_over(one, seen),
    )


def _over(one: Injected, seen: RunState) -> float | None:
    """Unix seconds at which the fault was over; None if it is over at once, or lasts to the end."""
    over = over_at(one, seen)
    return over if one.time < over < inf and KINDS[one.fault.kind].lasts else None


def _detected(
    one: Injected, seen: RunState, until: float, until_other: float
) -> tuple[float, str] | None:
    """When and by what the fault was first detected.

    Args:
        until: the next fault of the same task, to which later events of the task belong.
        until_other: the next fault of any task, to which later events of the job belong.
    """
    task, since = one.fault.task, one.time - CLOCK_SLACK_S
    over = _over(one, seen) or inf
    signs = list[tuple[float, str]]()
    for life in seen.lives_of(task):
        signs += [(time, Action.OOM) for time in life.ooms if since <= time < until]
        if life.ended is None or life.exit_code == 0 or life.ended < since:
            continue
        # The last event of a failed leader comes just before its end.
        ends_job = task == seen.leader and life.exit_code and until == ended_at(seen)
        if life.ended < until or ends_job:
            signs.append((life.ended, Action.DIE))
    for entry in seen.entries:
        event = entry.event
        about_task = (isinstance(event, Silent) and event.of == task) or (
            isinstance(event, Unanswered) and task in (event.of, event.by)
        )
        about_job = isinstance(event, Failure | Retry)
        # A silence that begins after the fault has another cause.
        about_task = about_task and _silent_since(entry) <= over + CLOCK_SLACK_S
        if (about_task and since <= entry.time < until) or (
            about_job and since <= entry.time < until_other
        ):
            signs.append((entry.time, name_of(event)))
    return min(signs, default=None)


def _silent_since(entry: Entry) -> float:
    """Unix seconds at which the silence began that this entry reports."""
    event = entry.event
    if isinstance(event, Silent) and event.last_heard:
        return event.last_heard
    return entry.time - ((event.seconds or 0.0) if isinstance(event, Unanswered) else 0.0)


def _going_on(
    seen: RunState, fault: float, since: float, until: float, before: int
) -> tuple[float | None, int | None, int]:
    """(Unix seconds of the first new step, or of the job's good end; steps that were lost; the
    highest one before that).

    If the program was started again before `until`, or went back by itself, its first progress
    after that is new; what was reported until then is gone. If not, the first one after `since` and
    beyond `before` is, unless a longer pause follows at once: then the one after that.
    """
    moves = [(moment, step) for moment, step in progress(seen) if moment > fault]
    again = min((start for start in starts_of(seen) if fault < start < until), default=inf)
    reports = [(moment, step) for moment, step in steps(seen) if moment > fault]
    highest = before
    for moment, step in reports:
        if moment > again or (moment < until and step < highest):
            first = next((moved for moved, _ in moves if moved >= moment), None)
            return first, max(0, highest - step), highest
        highest = max(highest, step)
    new = [moment for moment, step in moves if moment > since and step > before]
    well_at = _well_at(seen)
    late = COUNTED_LATE_S if _counted(seen) else UNDER_WAY_S
    if again == inf and (first := _not_under_way(new, since, well_at, late)) is not None:
        return first, 0, before
    if well_at < inf:
        return well_at, 0, highest
    return None, None, highest


def _well_at(seen: RunState) -> float:
    """Unix seconds of the leader's successful end; infinite if it did not succeed."""
    ended = seen.ended(seen.leader)
    return ended[0] if ended and ended[1].exit_code == 0 else inf


def _counted(seen: RunState) -> bool:
    """Whether the kit counts the leader's steps."""
    steps_of_leader = (
        entry.event
        for entry in seen.entries
        if entry.task == seen.leader and isinstance(entry.event, Step)
    )
    return any(event.counted for event in steps_of_leader)


def _not_under_way(reports: Sequence[float], since: float, end: float, late: float) -> float | None:
    """The first of these moments after which training continued, or ended successfully.

    A report sent before the fault can arrive up to `late` seconds after it, and be the last one for
    a long time.
    """
    for place, moment in enumerate(reports):
        after = pairwise((*reports[place:], end))
        pauses = [following - one for one, following in after if one < since + late]
        if all(pause <= PAUSE_S for pause in pauses):
            return moment
    return None


def _rounded(seconds: float) -> float:
    return round(seconds, 2)
