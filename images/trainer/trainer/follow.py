"""Supervision of a program that does not lead: it ends with the job, within its grace."""

from __future__ import annotations

import time
from queue import SimpleQueue

from trainer import beacon, mailbox, outcome
from trainer.beacon import JobEnded
from trainer.child import Child, Program, ProgramEnded
from trainer.outcome import Outcome
from trainer.progress import Progress
from trainer.serve import job_ended
from trainer.task import EVALUATOR, Task
from trainer.waiting import next_event

WORKER_GRACE_S = 10.0


def follow(
    task: Task, program: Program, progress: Progress, events: SimpleQueue[object]
) -> Outcome:
    """Run the program until it ends, or the job has ended and its grace is over."""
    progress.write("start", attempt=1)
    if task.beacon:
        beacon.follow(task.beacon, task.start_deadline_s, events.put)
    child = Child(task, program, 1, events.put)
    if task.role != EVALUATOR:
        child.tell(mailbox.SERVERS_READY)
    grace_ends_at = float("inf")
    while True:
        event = next_event(events, grace_ends_at) or grace_over(task)
        match event:
            case ProgramEnded(returncode=code):
                return child.outcome(code)
            case Outcome():
                child.stop()
                return event
            case JobEnded(exit_code=code) if code == 0 or (
                code is not None and task.role != EVALUATOR
            ):
                child.tell(mailbox.JOB_ENDED)
                grace_ends_at = time.monotonic() + grace_s(task)
            case JobEnded():
                child.stop()
                return job_ended(task, event)


def grace_s(task: Task) -> float:
    return task.evaluator_grace_s if task.role == EVALUATOR else WORKER_GRACE_S


def grace_over(task: Task) -> Outcome:
    """An evaluator that is not done is a failure; a worker after the leader's end is not."""
    after = f"was still running {grace_s(task):g} s after the job's end"
    if task.role == EVALUATOR:
        return outcome.deadline(outcome.EVALUATOR_GRACE, f"the evaluator {after}")
    return Outcome(0, outcome.FINISHED, f"the program {after}, and was stopped")
