"""Judges a run: how it ended, and which task is to blame. Pure."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

from cluster_kit.contract.endings import (
    CUT_OFF,
    EXIT_OUTPUT,
    EXIT_TERMINATED,
    NOT_FAILED,
    REASONS,
)
from cluster_kit.contract.events import End, Failure, Profiled, Ready, Retry, Start, Step
from cluster_kit.errors import Interrupted, TrainingFailed
from cluster_kit.observe import absences, heartbeats, hot_ps, task_view
from cluster_kit.observe.heartbeats import Silence
from cluster_kit.observe.lives import by_task
from cluster_kit.observe.reconcile import crashed
from cluster_kit.observe.state import RunState
from cluster_kit.observe.task_view import KILLED, State, is_work
from cluster_kit.observe.tracebacks import on_host
from cluster_kit.platforms.engine import SIDECAR, Container
from cluster_kit.resolved import Cluster, ProfileAt, RestartCodes, Task
from cluster_kit.roles import ROLES
from cluster_kit.util.masking import LEFT_OUT as TEXT_LEFT_OUT

Ending = Literal["ended", "overdue", "interrupted", "superseded", "sidecar", "memory", "no-retries"]
"""The leader ended for good; the kit's own limit on the run passed; Ctrl-C or SIGTERM; another run
of changed files takes its place; a sidecar that the job needs has crashed, or one that programs
wait for has ended; a server ran out of memory before the job could begin; the leader waits for a
task that has no retries left."""


class Reason(StrEnum):
    """Why a run ended: `reason` of outcome.json.

    Supervisors report FINISHED to STOPPED (see `contract.endings`); the last five are for runs that
    failed before a verdict.
    """

    FINISHED = "finished"
    FAILED = "failed"
    START_DEADLINE = "start-deadline"
    JOB_DEADLINE = "job-deadline"
    EVALUATOR_GRACE = "evaluator-grace"
    SILENT = "silent"
    STALL = "stall"
    GPU_MISSING = "gpu-missing"
    CANNOT_SHAPE = "cannot-shape"
    DISK_FULL = "disk-full"
    OUTPUT_LOST = "output-lost"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"
    MANIFEST = "manifest"
    HOST = "host"
    ENGINE = "engine"
    DATA = "data"
    INTERNAL = "internal"


CODES = {
    Reason(name): reason.kit
    for name, reason in REASONS.items()
    if reason.kit != TrainingFailed.exit_code
}
"""The kit's exit code by the supervisor's reason; any other reason means a failed training."""
BLAMELESS = tuple(Reason(name) for name, reason in REASONS.items() if reason.blameless)
"""The reasons for which no task is to blame."""
SURVIVED_S = 30.0
"""Seconds: a failure this long before the leader's end did not cause it. A chief fails 2 s after a
ps is lost, an all-reduce worker 9 s after another worker."""
OUTPUT_LOST = "the output directory cannot be written any more"
RESUME = (
    "`--resume` (make: RESUME=1) continues from the last checkpoint, if the program has saved one"
)
SOON_S, HEARD_S = 60.0, 2.0
"""A program that ran out of memory after more than SOON_S seconds may have worked before.

Its `end` can be up to HEARD_S seconds earlier than the engine's event.
"""
_BEFORE = "before the job could begin"
OUT_OF_MEMORY = " (out of memory: raise its `memory` limit, if any)"


@dataclass(frozen=True)
class Verdict:
    """How a run ended.

    `exit_code` is the kit's (see `errors`); `blame` is the name of a task, or ""; `hint` says what
    to do, or is "". `decided` says who decided, if the manifest's `success` or `restart` did.
    """

    success: bool
    exit_code: int
    reason: str
    blame: str = ""
    message: str = ""
    hint: str = ""
    decided: str = ""


def judge(cluster: Cluster, seen: RunState, ending: Ending) -> Verdict:
    """The verdict on a run, from its observed state and from how watching it ended."""
    if ending == "interrupted":
        message = "interrupted by you: Ctrl-C or SIGTERM"
        return Verdict(
            False, Interrupted.exit_code, Reason.INTERRUPTED, "", message, _to_go_on(seen)
        )
    if ending == "superseded":
        message = "stopped to run again: its files have changed (`--watch`)"
        return Verdict(False, CODES[Reason.STOPPED], Reason.STOPPED, "", message)
    if ending == "sidecar":  # `blamed` says which sidecar
        return Verdict(False, TrainingFailed.exit_code, Reason.FAILED, "", "a sidecar has crashed")
    if ending == "memory" and (name := starved(cluster, seen)):
        return _judge_starved(cluster, seen, name)
    if ending == "no-retries" and (name := awaited_in_vain(cluster, seen)):
        return _judge_awaited(seen, name)
    if ending == "overdue":
        message = f"the run went past its deadlines ({cluster.deadlines.job:g} s for the job)"
        return Verdict(False, CODES[Reason.JOB_DEADLINE], Reason.JOB_DEADLINE, seen.leader, message)
    if seen.tasks[seen.leader].exit_code == 0:
        verdict = _judge_evaluators(cluster, seen)
        return replace(verdict, decided=_decided(cluster, seen)) if verdict.success else verdict
    verdict = replace(_judge_leader(seen), decided=_decided(cluster, seen))
    if verdict.reason == Reason.SILENT and _failed_for_good(seen, verdict.blame):
        first, _, _ = _last_failure(seen, verdict.blame)
        words = (end.message if (end := seen.end_of(seen.leader)) else None) or "it was silent"
        message = f"{first} ({_spent(seen, verdict.blame)}); {words}"
        code = TrainingFailed.exit_code
        verdict = replace(verdict, exit_code=code, reason=Reason.FAILED, message=message)
    if lost_node := absences.node_text(seen, verdict.blame):
        verdict = replace(verdict, exit_code=CODES[Reason.SILENT], reason=Reason.SILENT)
    lost_node = lost_node or absences.refusal(seen, verdict.blame)
    lost_node = lost_node or absences.request_before_blame(seen, verdict.blame)
    lost_node = lost_node or absences.ended_from_outside(seen, verdict.blame)
    verdict = replace(verdict, message=verdict.message.removeprefix(f"{verdict.blame}: "))
    return replace(verdict, message=f"{verdict.message} ({lost_node})") if lost_node else verdict


def _decided(cluster: Cluster, seen: RunState) -> str:
    """A sentence of the leader's about who decided; "" if no key of the manifest has a say."""
    if cluster.success is None and cluster.restart == RestartCodes():
        return ""
    end = seen.end_of(seen.leader)
    return ((end.decided if end else None) or "").partition("\n")[0][:LONGEST_NOTE]


def starved(cluster: Cluster, seen: RunState) -> str:
    """The task that has run out of memory and would do so again with its limit; "" if none.

    It is a server for which the leader waits, or a task that ran out of memory twice.
    """
    needed = [t for t in cluster.tasks if t.memory and not _is_spare(cluster, t)]
    return _starved_server(cluster, seen) or next(
        (task.name for task in needed if _starved_twice(seen, task.name)), ""
    )


def _is_spare(cluster: Cluster, task: Task) -> bool:
    """Whether the job can succeed without this task, by the manifest's `success`."""
    if cluster.success is None or task.serves or not ROLES[task.role].leads:
        return False
    return dict(cluster.success.needed).get(task.role, 0) < len(cluster.of(task.role))


def _starved_twice(seen: RunState, task: str) -> bool:
    """Whether the memory limit ended the last two attempts of a task's program, or lives of a
    server, soon after their start, and no task has made a step since the first of them."""
    lives = seen.lives_of(task)
    killed = [time for life in lives for time in life.ooms]
    if len(killed) < 2:
        return False
    attempts = _attempts(seen, task) or [
        (life.began, life.ended) for life in lives if life.began is not None and life.ended
    ]
    for start, end in attempts[-2:]:
        if end is None or end - start > SOON_S:
            return False
        if not any(start <= time <= end + HEARD_S for time in killed):
            return False
    return len(attempts) > 1 and not any(
        is_work(entry) for entry in seen.entries if entry.time >= attempts[-2][0]
    )


def _attempts(seen: RunState, task: str) -> list[tuple[float, float | None]]:
    """The start and end of each attempt of a task's program, without one that has just begun; the
    end is None if the program was not killed. [] for a server."""
    attempts: list[tuple[float, float | None]] = []
    for entry in seen.entries:
        if entry.task == task and isinstance(entry.event, Start):
            attempts.append((entry.time, None))
        elif entry.task == task and isinstance(entry.event, Failure | End) and attempts:
            start, end = attempts[-1]
            if end is None and entry.event.exit_code == KILLED:
                attempts[-1] = start, entry.time
    if attempts and attempts[-1][1] is None:
        attempts.pop()  # a supervisor begins the next one at once
    return attempts


def _starved_server(cluster: Cluster, seen: RunState) -> str:
    """A server that ran out of memory while the leader waits for it; "" if none did.

    Waiting for the start deadline would be useless. A server that was ready before can recover if
    the engine restarts it.
    """
    begun, ready = seen.last(seen.leader, Start), seen.last(seen.leader, Ready)
    if ready is not None and (begun is None or begun[0] <= ready[0]):
        return ""
    for task in cluster.tasks:
        has_ended = seen.tasks[task.name].state is State.ENDED
        died = bool(seen.ends(task.name))
        if task.serves and died and out_of_memory(seen, task.name) and (ready is None or has_ended):
            return task.name
    return ""


def _judge_starved(cluster: Cluster, seen: RunState, name: str) -> Verdict:
    limit, role = next((t.memory, t.role) for t in cluster.tasks if t.name == name)
    has = f": it has {limit / 2**20:.0f} MiB" if limit else ""
    when = "twice, soon after its start" if _starved_twice(seen, name) else _BEFORE
    message = f"{name} ran out of memory {when}{has}"
    hint = f"raise `memory` in [role.{role}] or [task.{name}], or remove it"
    if not limit:
        hint = "it has no limit of its own: run fewer tasks, or give the engine more memory"
    return Verdict(False, TrainingFailed.exit_code, Reason.FAILED, name, message, hint)


def awaited_in_vain(cluster: Cluster, seen: RunState) -> str:
    """The task that has failed for good, and for which a leader that began again waits; "" if none.

    A leader that was there when the task failed has ended the job itself, or does without the task.
    If it was restarted, or its program was, it needs all tasks again: it would wait until the start
    deadline.
    """
    failed = [
        task
        for task in cluster.tasks
        if _failed_for_good(seen, task.name)
        and ROLES[task.role].trains
        and task is not cluster.leader
        and not _is_spare(cluster, task)
    ]
    begun = seen.last(seen.leader, Start) if failed else None
    if begun is None or not seen.is_of_last_life(seen.leader, begun[0]):
        return ""
    if not seen.tasks[seen.leader].restarts and (begun[1].attempt or 1) < 2:
        return ""
    ready = seen.last(seen.leader, Ready)
    is_ready = ready is not None and ready[0] >= begun[0]
    awaited = (
        t for t in failed if not (is_ready if t.serves else seen.ends(t.name)[-1] > begun[0])
    )
    return next((task.name for task in awaited), "")


def _failed_for_good(seen: RunState, task: str) -> bool:
    """Whether a task's container failed, and nobody but a person starts it again."""
    view, lives = seen.tasks[task], seen.lives_of(task)
    if view.state is not State.ENDED or view.exit_code in (None, *NOT_FAILED) or not lives:
        return False
    elsewhere = any(life.lost or life.drained or life.refusal for life in lives)
    return not (elsewhere or lives[-1].kills or lives[-1].removed)


def _judge_awaited(seen: RunState, name: str) -> Verdict:
    first, newline, rest = _last_failure(seen, name)
    needed = f"and {seen.leader}, which began again, needs it"
    message = f"{first} ({_spent(seen, name)}), {needed}{newline}{rest}"
    return Verdict(False, TrainingFailed.exit_code, Reason.FAILED, name, message)


def _last_failure(seen: RunState, name: str) -> tuple[str, str, str]:
    """How a task failed last: the first line, a newline, and the rest, as of `partition`."""
    code, failures = seen.tasks[name].exit_code, seen.final_failures(name)
    message = failures[-1].message if failures else None
    ended = f"{name} ended with exit code {code}{_meaning(seen, name, code)}"
    return (message or ended).partition("\n")


def _spent(seen: RunState, name: str) -> str:
    times = seen.own_restarts(name) + 1
    return f"{times} {'time' if times == 1 else 'times'}; {seen.retries[name]} retries"


def _judge_stopped(seen: RunState, message: str) -> Verdict:
    return Verdict(False, CODES[Reason.STOPPED], Reason.STOPPED, "", message, _to_go_on(seen))


def _to_go_on(seen: RunState) -> str:
    """How to continue a run that a person stopped; "" if no program can have worked yet.

    Not every program reports its steps.
    """
    has_begun = seen.last(seen.leader, Ready) is not None or any(map(is_work, seen.entries))
    return RESUME if has_begun else ""


def _judge_leader(seen: RunState) -> Verdict:
    """The verdict on a failed leader: it failed by itself, or because of another task."""
    leader, code = seen.leader, seen.tasks[seen.leader].exit_code
    end = seen.end_of(leader)
    if end is None and (silence := heartbeats.current(seen).get(leader)):
        return Verdict(False, CODES[Reason.SILENT], Reason.SILENT, leader, str(silence))
    if end is None and code == EXIT_OUTPUT:
        return Verdict(False, CODES[Reason.OUTPUT_LOST], Reason.OUTPUT_LOST, "", OUTPUT_LOST)
    if end is None and any(life.removed for life in seen.lives_of(leader)):
        return _judge_stopped(seen, f"{leader} was removed while it ran")
    if end is None and code == EXIT_TERMINATED:
        return _judge_stopped(seen, _stopped(seen))
    reason, message, named = _end_report(end)
    if reason in CODES:
        if reason == Reason.STOPPED:
            return _judge_stopped(seen, _stopped(seen))
        blame = "" if reason in BLAMELESS else named or leader
        if reason == Reason.JOB_DEADLINE:
            message = _with_quiet_end(seen, message)
        if reason == Reason.SILENT:
            told = [str(one) for one in heartbeats.all_of(seen) if one.task == blame and one.ended]
            message = told[-1] if told else message
        starved = reason == Reason.START_DEADLINE and out_of_memory(seen, blame)
        if starved or (reason == Reason.SILENT and _ended_out_of_memory(seen, blame)):
            message = f"{blame} ran out of memory: raise its `memory` limit, if any ({message})"
        return Verdict(False, CODES[Reason(reason)], reason, blame, message)
    blame = named
    if not blame:
        blame, code = _first_failure(seen, code)
    own_failures = seen.final_failures(blame) if not named and blame != leader else []
    if own_failures and own_failures[-1].message:
        message = f"{blame}: {own_failures[-1].message}"
    elif not named and (blame != leader or not message):
        ended = f"exit code {code}" if code is not None else "an unknown exit code"
        message = f"{blame} ended with {ended}{_meaning(seen, blame, code)}"
    elif _failed_of_memory(seen, blame):
        message += OUT_OF_MEMORY
    return Verdict(False, TrainingFailed.exit_code, reason, blame, message)


QUIET_S = 30.0
"""Seconds without a step at a job's deadline that are worth a word."""


def _with_quiet_end(seen: RunState, message: str) -> str:
    """The message of a deadline, with how long before it the last step was, if that is long."""
    reached = seen.ended(seen.leader)
    steps = [entry.time for entry in seen.entries if isinstance(entry.event, Step)]
    quiet_s = reached[0] - max(steps) if reached and steps else 0.0
    if quiet_s < QUIET_S:
        return message
    first, newline, rest = message.partition("\n")
    return f"{first}; the last step was {quiet_s:.0f} s before{newline}{rest}"


def _stopped(seen: RunState) -> str:
    return f"{seen.leader} was stopped from outside: {absences.stopped_by(seen, seen.leader)}"


def _judge_evaluators(cluster: Cluster, seen: RunState) -> Verdict:
    """The verdict if the training succeeded: success, unless an evaluator that counts failed."""
    for name in sorted(seen.evaluators) if _evaluators_count(cluster) else ():
        code = seen.tasks[name].exit_code
        if code in NOT_FAILED:
            continue
        reason, message, _ = _end_report(seen.end_of(name))
        if code is None:
            late, end = Reason.EVALUATOR_GRACE, seen.late_end(name)
            message = message or (end.message if end else None) or STILL_RUNNING.format(name)
            if failures := seen.final_failures(name):
                message += f", after it had failed {_times(failures)}: {failures[-1].message or ''}"
            return Verdict(False, CODES[late], late, name, message)
        if reason in CODES:
            return Verdict(False, CODES[Reason(reason)], reason, name, message)
        message = message or f"{name} ended with exit code {code}"
        if _failed_of_memory(seen, name):
            message += OUT_OF_MEMORY
        return Verdict(False, TrainingFailed.exit_code, reason, name, message)
    return Verdict(True, 0, Reason.FINISHED)


def _evaluators_count(cluster: Cluster) -> bool:
    """Whether an evaluator must end well, too."""
    return cluster.success is None or cluster.success.evaluator


def _end_report(end: End | None) -> tuple[str, str, str]:
    """(reason, message, first named task or "") of a supervisor's `end` event, if there is one."""
    if end is None:
        return Reason.FAILED, "", ""
    return end.reason or Reason.FAILED, end.message or "", end.tasks[0] if end.tasks else ""


def _first_failure(seen: RunState, code: int | None) -> tuple[str, int | None]:
    """(task, exit code) of the first failure in the leader's last attempt; it caused the others.

    Evaluators and tf.data service's tasks take no part in the training and are never the cause.
    """
    leader = seen.leader
    attempt = seen.last(leader, Start)
    since = attempt[0] if attempt else 0.0
    failure = seen.last(leader, Failure)
    until = failure[0] if failure and failure[0] >= since else math.inf
    failed = [
        (life.failed_at, life.ended, task, life.exit_code)
        for task, life in by_task(seen.lives)
        if life.failed_at is not None
        and life.ended is not None
        and life.ended >= since
        and ROLES[seen.tasks[task].role].trains
        and (task == leader or life.failed_at <= until)
        and life.exit_code not in NOT_FAILED
        and not _was_survived(seen, task, life.ended)
        and not absences.was_asked_for(seen, task, life.ended)
    ]
    if not failed:
        return leader, code
    _, _, first, exit_code = min(failed, key=lambda failure: failure[:2])
    return first, exit_code


def _was_survived(seen: RunState, task: str, end: float) -> bool:
    """Whether the task restarted and training continued, so that its failure did not end the
    run."""
    came_back = any(start > end for start in seen.starts(task))
    ends = seen.ends(seen.leader)
    return came_back and bool(ends) and ends[-1] - end > SURVIVED_S


def _meaning(seen: RunState, task: str, code: int | None) -> str:
    """The meaning of an exit code, for the end of a message; "" if it has no special meaning."""
    if _failed_of_memory(seen, task):
        return OUT_OF_MEMORY
    return _of_signal(code)


def _of_signal(code: int | None) -> str:
    return f" (killed by signal {code - OF_SIGNAL})" if code and code > OF_SIGNAL else ""


def out_of_memory(seen: RunState, task: str) -> bool:
    """Whether a process of the task was killed because the memory limit was reached."""
    return bool(_last_oom(seen, task))


def _failed_of_memory(seen: RunState, task: str) -> bool:
    """Whether a process of the task was killed in that way in the attempt that failed last."""
    lives = [life for life in seen.lives_of(task) if life.exit_code not in (None, *NOT_FAILED)]
    if not lives:
        return out_of_memory(seen, task)
    until = math.inf if lives[-1].ended is None else lives[-1].ended
    begun = (e.time for e in seen.entries if e.task == task and isinstance(e.event, Start))
    since = max((time for time in begun if time <= until), default=0.0)
    return any(time >= since for time in lives[-1].ooms)


def _ended_out_of_memory(seen: RunState, task: str) -> bool:
    """Whether the last life of a task's container ended because the memory limit was reached."""
    lives = seen.lives_of(task)
    return bool(lives) and lives[-1].ended is not None and bool(lives[-1].ooms)


def _last_oom(seen: RunState, task: str) -> float:
    """Unix time at which that last happened, 0 if never."""
    return max((time for life in seen.lives_of(task) for time in life.ooms), default=0.0)


NO_PART = "had no part in the training: it made no step before the others were done"
STARVED = "ran out of memory (raise its `memory` limit, if any)"
OF_SIGNAL = 128
"""An exit code above this is that of a signal."""
CAME_BACK = "and was started again"
WITHOUT_IT = "and the leader ended without it"
UNCOUNTED = "which does not count (`success`)"
OVER_THE_END = re.compile(
    r"killed by SIG|[Cc]onnection|Socket closed|Broken ?[Pp]ipe|[Cc]ollective"
    r"|(Unavailable|Aborted|Cancelled|Internal|Unknown|FailedPrecondition|NotFound|DeadlineExceeded"
    r"|Timeout)Error"
)
"""Messages with which programs report that other tasks have ended: not their own fault."""
OWN_FAULT = re.compile(
    r"No such file or directory|Permission ?denied|HTTPS?Connection|https?://"
    r"|killed by SIG(SEGV|BUS|FPE|ILL)"
)
"""Errors that another task's end does not cause, even if they are in such a message."""
LEFT_OUT = "invalid, about tasks that the run does not have, or too many"
MOST = 200
"""Notes of a run."""
LONGEST, LONGEST_NOTE = 200, 1_000
"""The most characters of a failed task's message in a note, and of a note."""


LEFT_IN_TMP = "has saved below /tmp, which is not kept (/output is)"
WAITS = '; `success = "all"` waits for it'
STILL_RUNNING = "{} was still running after its grace"
FORGOTTEN = (
    "ended before the workers had finished {:,.0f} of the functions that it had scheduled: "
    "`coordinator.join()` waits for them"
)


def notes_of(cluster: Cluster, seen: RunState) -> list[str]:
    """The first MOST of `all_notes`; an error here does not affect the verdict."""
    try:
        notes = all_notes(cluster, seen)
    except Exception as error:  # noqa: BLE001 a bug here must not cost the run its outcome
        return [f"the notes on this run could not be written: {repr(error)[:LONGEST]}"]
    more, notes = len(notes) - MOST, [_shortened(note) for note in notes[:MOST]]
    return [*notes, f"{more:,} more notes are left out"] if more > 0 else notes


def _shortened(note: str) -> str:
    cut = LONGEST_NOTE - len(TEXT_LEFT_OUT)
    return note if len(note) <= LONGEST_NOTE else note[:cut] + TEXT_LEFT_OUT


def all_notes(cluster: Cluster, seen: RunState) -> list[str]:
    """One line for each silence, each further attempt of the leader's program, and each restart and
    stop on request, in the order of time; for each node that went down, for each cut between two
    tasks, for what training waited for, for each period in which a task was a straggler, for each
    ps that held the job up, for a last loss that is not finite, for what the leader has left in
    /tmp, for functions that it did not wait for, and for each task that was ended from outside,
    that was cut off, that failed without ending the job or after the job's end, that ran out of
    memory and restarted, that never made a step, or that was killed or failed and started again;
    and one for a leader that ended and was started again, if the job then succeeded.
    """
    happened = [(silence.time, _silence(silence, seen)) for silence in heartbeats.all_of(seen)]
    happened += [*retry_notes(cluster, seen), *absences.request_notes(seen)]
    in_order = Counter(note for _, note in sorted(happened, key=lambda pair: pair[0]))
    notes = [note if times == 1 else f"{note} ({times} times)" for note, times in in_order.items()]
    notes += absences.node_notes(seen)
    notes += heartbeats.cuts(seen)
    notes += heartbeats.waits(seen)
    notes += profile_notes(cluster.profile, seen)
    if seen.left_out:
        lines = "line" if seen.left_out == 1 else "lines"
        notes.append(f"{seen.left_out:,} {lines} of progress files left out: {LEFT_OUT}")
    lags = [lag for lag in task_view.periods(seen.entries) if lag.task in seen.tasks]
    notes += map(task_view.note, lags)
    notes += map(hot_ps.note, seen.loads.hot.values())
    succeeded = seen.tasks[seen.leader].exit_code == 0
    if succeeded and seen.tasks[seen.leader].diverged:
        notes.append(f"the last loss of {seen.leader} is {seen.tasks[seen.leader].loss}")
    figures = seen.metrics()
    notes += absences.outside_notes(seen) if succeeded else []
    for task in cluster.tasks:
        ended = absences.ended_from_outside(seen, task.name)
        if succeeded and not ended and figures.get(f"steps_of_{task.name}") == 0:
            notes.append(f"{task.name} {NO_PART}")
        end, failures = seen.end_of(task.name), seen.final_failures(task.name)
        if end is not None and end.in_tmp:
            notes.append(f"{task.name} {LEFT_IN_TMP}: {', '.join(end.in_tmp)}")
        if end is not None and end.forgotten:
            notes.append(f"{task.name} {FORGOTTEN.format(end.forgotten)}")
        if end is not None and end.reason == CUT_OFF:
            waits = "" if cluster.success else WAITS
            more = f"; it {_left_out(failures, cluster)}" if failures else waits
            notes.append(f"{task.name}: {end.message or ''}{more}")
        elif failures and succeeded and task.name not in seen.evaluators:
            notes.append(f"{task.name}: {_left_out(failures, cluster)}")
        elif failures and succeeded and not _evaluators_count(cluster):
            notes.append(f"{task.name}: {_left_out(failures, cluster, UNCOUNTED)}")
        elif end is not None and (late := _late_failure(end, cluster)):
            notes.append(f"{task.name}: {late}")
        elif task.feeds and (ended := _ended_early(seen, task.name)):
            notes.append(f"{task.name} {ended}, and the job went on without it")
        elif (last := _last_oom(seen, task.name)) and (
            succeeded or task.feeds or not _failed_of_memory(seen, task.name)
        ):
            program = seen.last(task.name, Start)
            is_back = max(seen.started_at(task.name), program[0] if program else 0.0) > last
            then = f", {CAME_BACK}" if is_back else ""
            notes.append(f"{task.name} {STARVED}{then}")
        if succeeded and (ended := _ended_and_came_back(seen, task.name)):
            notes.append(f"{task.name} {ended}, {CAME_BACK}")
        elif succeeded and (survived := _survived_failures(seen, task.name)):
            notes.append(f"{task.name}: {_left_out(survived, cluster, CAME_BACK)}")
    return notes


def _survived_failures(seen: RunState, task: str) -> list[End]:
    """The failures of a task's program after which it was started again, if they were its own: []
    for a leader, and if the leader's program was started again, since the others end with it.
    """
    attempts = [e for e in seen.entries if e.task == seen.leader and isinstance(e.event, Start)]
    if task == seen.leader or len(attempts) > 1:
        return []
    start, end = seen.last(task, Start), seen.ended(seen.leader)
    if start is None or end is None or seen.final_failures(task):
        return []
    return [
        entry.event
        for entry in seen.entries
        if entry.task == task
        and entry.time < min(start[0], end[0])
        and isinstance(entry.event, End)
        and entry.event.reason == Reason.FAILED
        and not OVER_THE_END.search(entry.event.message or "")
        and not absences.was_asked_for(seen, task, entry.time)
    ]


def _ended_and_came_back(seen: RunState, task: str) -> str:
    """How a task's container ended that the engine started again; "" if none did, or only because
    of something that other notes are about: a request, a lost node, a silence.

    Of other tasks than the leader only those that were killed: their programs end with it, too.
    """
    silences = [silence.time for silence in heartbeats.all_of(seen)]
    lives = [life for life in seen.lives_of(task) if life.began is not None]
    told = [
        life
        for life in lives[:-1]
        if life.ended is not None
        and (life.exit_code or 0) > (0 if task == seen.leader else OF_SIGNAL)
        and not (life.ooms or life.lost or life.drained or life.removed)
        and not absences.was_asked_for(seen, task, life.ended)
        and not any((life.began or 0.0) <= at <= life.ended for at in silences)
    ]
    if not told:
        return ""
    last = told[-1]
    times = f"{len(told)} times, last " if len(told) > 1 else ""
    return f"ended {times}with exit code {last.exit_code}{_of_signal(last.exit_code)}"


def _ended_early(seen: RunState, task: str) -> str:
    """How a task failed for good before the leader's end; "" if it did not."""
    code, ends, of_leader = seen.tasks[task].exit_code, seen.ends(task), seen.ends(seen.leader)
    if code in (None, *NOT_FAILED) or not (ends and of_leader and ends[-1] < of_leader[-1]):
        return ""
    return f"ended with exit code {code}{_meaning(seen, task, code)}"


def retry_notes(cluster: Cluster, seen: RunState) -> Iterator[tuple[float, str]]:
    """The time of each further attempt of the leader's program, and a line with its reason, and
    with the task whose program failed before the leader's did."""
    ooms = [time for life in seen.lives_of(seen.leader) for time in life.ooms]
    begun, code = 0.0, None
    for entry in seen.entries:
        match entry.event:
            case _ if entry.task != seen.leader:
                continue
            case Start():
                begun = entry.time
            case Failure():
                code = entry.event.exit_code
            case Retry():
                reason = entry.event.reason or "the reason is not known"
                if code == KILLED and any(begun <= at <= entry.time for at in ooms):
                    reason += " (out of memory)"
                reason += _failed_before_leader(cluster, seen, begun, entry.time)
                yield entry.time, f"the program of {seen.leader} was started again: {reason}"
            case _:
                pass


def _failed_before_leader(cluster: Cluster, seen: RunState, since: float, until: float) -> str:
    """The first failure of another task's program between two attempts of the leader's, if the
    leader's failed after it: `; worker-1 failed before: ValueError: …`; else ""."""
    between = [entry for entry in seen.entries if since <= entry.time <= until]
    own = [e.time for e in between if e.task == seen.leader and isinstance(e.event, Failure)]
    failed = [
        (entry.time, entry.task, entry.event.message or "no message")
        for entry in between
        if isinstance(entry.event, End)
        and entry.event.reason == Reason.FAILED
        and entry.task != seen.leader
        and entry.task in seen.tasks
        and ROLES[seen.tasks[entry.task].role].trains
        and own
        and entry.time < own[-1]
    ]
    if not failed:
        return ""
    _, task, message = min(failed)
    return f"; {task} failed before: {_first_line(message, cluster)}"


def profile_notes(asked: ProfileAt | None, seen: RunState) -> Iterator[str]:
    """A line if there is no trace, or if the trace lacks some of the tasks."""
    if asked is None:
        return
    taken = [entry.event for entry in seen.entries if isinstance(entry.event, Profiled)]
    if not taken:
        yield f"no profile: {_why_no_profile(asked, seen)}"
        return
    last = taken[-1]
    if last.message:
        yield f"no profile: {last.message}"
    elif last.missing:
        yield f"the profile lacks {', '.join(last.missing)}: no trace came from there in time"


def _why_no_profile(asked: ProfileAt, seen: RunState) -> str:
    reported = (entry.event.step for entry in seen.entries if isinstance(entry.event, Step))
    steps = [step for step in reported if step is not None]
    if not steps:
        return f"the program reported no steps, so step {asked.at_step} was never reached"
    if max(steps) < asked.at_step:
        return f"step {asked.at_step} was never reached, the last reported one was {max(steps):g}"
    return f"step {asked.at_step} was reached, but the run ended before the trace was saved"


KILLED_S = 1.0
"""A frozen task that is killed runs, and answers, for a moment; the engine reports the kill a bit
later."""


def _silence(silence: Silence, seen: RunState) -> str:
    """A text about a silence, and what happened after it."""
    start = min((at for at in seen.starts(silence.task) if at > silence.time), default=math.inf)
    kills = [at for life in seen.lives_of(silence.task) for at in life.kills if at > silence.time]
    heard = heartbeats.heard_again(silence, seen)
    if heard is not None and heard < min([start, *(at - KILLED_S for at in kills)]):
        return f"{silence}; it answered again after {heard - silence.last_heard:.0f} s"
    return f"{silence}; it was started again" if start < math.inf else str(silence)


def _late_failure(end: End, cluster: Cluster) -> str:
    """How a task's program failed after a successful job; "" if it failed only because the job
    ended."""
    message = end.message or ""
    over_the_end = OVER_THE_END.search(message) and not OWN_FAULT.search(message)
    if not end.after_job or over_the_end:
        return ""
    return f"its program failed {_first_line(message, cluster)}; the verdict is the leader's"


def _first_line(message: str, cluster: Cluster) -> str:
    """The first line, with the host's paths, of bounded length."""
    line = on_host(message.partition("\n")[0], cluster.all_mounts)
    return f"{line[: LONGEST - 1]}…" if len(line) > LONGEST else line


def _times(failures: Sequence[End]) -> str:
    return {1: "once", 2: "twice"}.get(len(failures), f"{len(failures)} times")


def _left_out(failures: Sequence[End], cluster: Cluster, then: str = WITHOUT_IT) -> str:
    last = failures[-1]
    message = _first_line(last.message or "", cluster)
    note = f"failed {_times(failures)} (exit code {last.exit_code}), {then}"
    return f"{note}; its last words: {message}" if message else note


def ended_unready(cluster: Cluster, seen: RunState, sidecars: Iterable[Container]) -> set[str]:
    """The sidecars that have ended, except by a user's stop, while programs wait for their port
    (`ready`): none once the leader's program has started."""
    awaited = {one.name for one in cluster.sidecars if one.ready and one.ready.port}
    ended = {
        one.name
        for one in sidecars
        if one.role == SIDECAR
        and one.name in awaited
        and State.of_engine(one.state) is State.ENDED
        and one.exit_code != EXIT_TERMINATED
    }
    return ended if ended and seen.last(seen.leader, Start) is None else set()


def unready(cluster: Cluster, container: str, ended: int | None) -> Verdict:
    """The verdict if the engine has started no task, since the command `ready` of a sidecar's
    container has not ended with 0; `ended` is the container's exit code, None if it runs."""
    names = (one.name for one in cluster.sidecars if container == f"{cluster.name}-{one.name}")
    name = next(names, container)
    if ended is None:
        reason = Reason.START_DEADLINE
        message = (
            f"the sidecar {name} was not ready within {cluster.deadlines.start:g} s: its command "
            "`ready` has not ended with 0"
        )
        hint = "try the command in the sidecar; if it needs longer, raise `deadline.start`"
        return Verdict(False, CODES[reason], reason, name, message, hint)
    message = f"the sidecar {name} ended with {ended} before it was ready"
    hint = "if it is meant to end, remove its `ready`" if ended == 0 else ""
    return Verdict(False, TrainingFailed.exit_code, Reason.FAILED, name, message, hint)


def words(one: Container) -> str:
    """A sentence about a sidecar that has ended."""
    why = ": out of memory" if one.oom else ""
    return f"the sidecar {one.name} has ended with exit code {one.exit_code}{why}"


def sidecar_notes(containers: Iterable[Container], blame: str) -> list[str]:
    """A note for each sidecar that crashed before the job's end, and is not to blame for that
    end."""
    return [
        f"{words(one)}; its log is logs/{one.name}.log"
        for one in crashed(containers)
        if one.name != blame
    ]


def blamed(
    cluster: Cluster,
    seen: RunState,
    verdict: Verdict,
    ending: Ending,
    containers: Sequence[Container],
) -> Verdict:
    """The verdict; if the job failed after the end of a sidecar that it needs or waits for, the
    one on that sidecar.

    Args:
        containers: of tasks and sidecars, before they were stopped.
    """
    if verdict.success or ending not in ("ended", "sidecar"):
        return verdict
    required = {one.name for one in cluster.sidecars if one.required}
    ends = [c.finished for c in containers if c.leader and c.exit_code is not None]
    ended = min(ends, default=float("inf"))
    down = [c for c in crashed(containers) if c.name in required and c.finished <= ended]
    unready: set[str] = set()
    if ending == "sidecar":
        unready = ended_unready(cluster, seen, containers)
        down += [c for c in containers if c.role == SIDECAR and c.name in unready]
    if not down:
        return verdict
    first = min(down, key=lambda c: c.finished)
    if first.name in unready:
        why = " (out of memory)" if first.oom else ""
        message = f"the sidecar {first.name} ended with {first.exit_code}{why} before it was ready"
        return Verdict(False, TrainingFailed.exit_code, Reason.FAILED, first.name, message)
    message = f"{words(first)}, and the job needs it (`required = true`)"
    return Verdict(False, TrainingFailed.exit_code, Reason.FAILED, first.name, message)
