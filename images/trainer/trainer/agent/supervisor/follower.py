"""Supervision of a program that does not lead: it ends with the job, within its grace."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from functools import partial
from queue import SimpleQueue

from trainer.agent import outcome, stacks
from trainer.agent.beacon import handshake, unanswered
from trainer.agent.beacon.client import BeaconClient, JobEnded, StacksWanted
from trainer.agent.beacon.messages import Done, Failed
from trainer.agent.event_queue import next_event
from trainer.agent.injected import mailbox
from trainer.agent.outcome import Outcome
from trainer.agent.progress_file import Progress
from trainer.agent.servers.serve import job_ended
from trainer.agent.supervisor import latecomer, peers
from trainer.agent.supervisor.child import Child, Program, ProgramEnded, debugged
from trainer.agent.task import EVALUATOR, Task
from trainer.contract import endings
from trainer.contract.times import FAILED_JOB_GRACE_S, WORKER_GRACE_S

LOOK_S = 0.02
END_IS_SAID_S = 1.0
"""Programs fail over the leader's end before they hear of it."""


def follow(
    task: Task, program: Program, progress: Progress, events: SimpleQueue[object]
) -> Outcome:
    """Run the program until it ends, or the job has ended and its grace is over."""
    progress.write("start", attempt=1)
    peers.forget(task)
    leader = (
        BeaconClient(
            task.beacon,
            partial(handshake.read_secret, task),
            task.name,
            task.start_deadline_s,
            events.put,
            silent_s=task.silent_s,
            others=unanswered.others(task),
        )
        if task.beacon
        else None
    )
    child = Child(task, program, 1, events.put)
    if leader and task.role == EVALUATOR:
        late = (task, leader, events.put)
        threading.Thread(target=latecomer.watch, args=late, name="latecomer", daemon=True).start()
    if task.role != EVALUATOR:
        child.tell(mailbox.SERVERS_READY)
    grace_ends_at, leaders_code = float("inf"), None
    while True:
        event = next_event(events, grace_ends_at) or grace_over(task, grace_ends_at, leaders_code)
        if isinstance(event, ProgramEnded):
            peers.done(task)
            ended = child.outcome(event.returncode)
            if task.role == EVALUATOR or not leader or ended.reason == endings.GPU_MISSING:
                return ended
            if leaders_code is not None:
                return after_the_job(leaders_code == 0, ended) or ended
            return tell(leader, task, ended, events)
        if isinstance(event, Outcome):
            child.stop()
            return event
        if isinstance(event, StacksWanted):
            stacks.keep(task, "the job makes no progress")
        elif isinstance(event, JobEnded):
            goes_on_s = after_leader_s(task, event.exit_code)
            if goes_on_s is None:
                child.stop()
                return job_ended(task, event)
            child.tell(mailbox.JOB_ENDED)
            grace_ends_at, leaders_code = time.monotonic() + goes_on_s, event.exit_code


def after_leader_s(task: Task, code: int | None) -> float | None:
    """How long the program may go on after the leader's exit code; None if it is stopped now."""
    if code == 0 and task.role != "ps":
        return grace_s(task)
    return FAILED_JOB_GRACE_S if code is not None and task.role == "worker" else None


def tell(leader: BeaconClient, task: Task, ended: Outcome, events: SimpleQueue[object]) -> Outcome:
    """Say how the program ended. A failure does not count if the job has just ended well."""
    if ended.exit_code >= 128:
        return ended
    news = reach(leader, task, events)
    if news is None and ended.exit_code == 0:
        leader.say(Done(task.name))
    elif news is None:
        leader.say(Failed(task.name, ended.message))
        until = time.monotonic() + END_IS_SAID_S
        while news is None and (news := next_event(events, until)) is not None:
            news = news if isinstance(news, (JobEnded, Outcome)) else None
    if isinstance(news, Outcome):
        return news
    return after_the_job(isinstance(news, JobEnded) and news.exit_code == 0, ended) or ended


def reach(leader: BeaconClient, task: Task, events: SimpleQueue[object]) -> object | None:
    """Wait until the leader is there: a short program may end before it. None when it is; else
    what came instead, the job's end or SIGTERM."""
    until = time.monotonic() + task.start_deadline_s
    while not leader.connected and time.monotonic() < until:
        event = next_event(events, time.monotonic() + LOOK_S)
        if isinstance(event, (JobEnded, Outcome)):
            return event
    return None


def after_the_job(job_succeeded: bool, ended: Outcome) -> Outcome | None:
    """A program that stumbled over the end of a job that went well has not failed."""
    if not job_succeeded or not ended.exit_code:
        return None
    message = f"after the job's end: {ended.message}"
    return replace(ended, exit_code=0, reason=endings.FINISHED, message=message, after_job=True)


def grace_s(task: Task) -> float:
    """Seconds that the program may go on after a leader that finished."""
    if debugged():
        return float("inf")
    return task.evaluator_grace_s if task.role == EVALUATOR else WORKER_GRACE_S


def grace_over(task: Task, ends_at: float, leaders_code: int | None) -> Outcome | None:
    """The outcome if the grace is over at `ends_at` (monotonic seconds), else None.

    An evaluator that is not done has failed. A worker has not; but if the leader finished, its
    work may be missing from the result, which CUT_OFF says.
    """
    if time.monotonic() < ends_at:
        return None
    if leaders_code:
        return job_ended(task, JobEnded(leaders_code))
    late = f"was still running {grace_s(task):g} s after"
    if task.role == EVALUATOR:
        return outcome.because(endings.EVALUATOR_GRACE, f"the evaluator {late} the job's end")
    return outcome.because(endings.CUT_OFF, f"the program {late} the leader's end, and was stopped")
