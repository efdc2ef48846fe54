"""Supervision of a program: start it, end it with the job, and return its exit code."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import NoReturn

from trainer.agent import disk_space, outcome, services, stacks
from trainer.agent.beacon import client, handshake
from trainer.agent.beacon.client import AgainWanted, BeaconClient, JobEnded, StacksWanted
from trainer.agent.beacon.messages import Done, Failed, Heard, Permanent, Report
from trainer.agent.beacon.server import BeaconServer
from trainer.agent.errors import TrainerError
from trainer.agent.event_queue import next_event, put_signals
from trainer.agent.injected import dead_connections, mailbox
from trainer.agent.outcome import Outcome
from trainer.agent.profiling import at_step
from trainer.agent.progress_file import Progress, last_event
from trainer.agent.servers.serve import job_ended
from trainer.agent.supervisor import peers
from trainer.agent.supervisor.child import Child, Program, ProgramEnded, debugged, find_program
from trainer.agent.supervisor.leader import Leader
from trainer.agent.task import EVALUATOR, Task
from trainer.agent.usage_recorder import Recorder
from trainer.contract import endings
from trainer.contract.events import End
from trainer.contract.times import BEAT_S, FAILED_JOB_GRACE_S, LATECOMER_S, WORKER_GRACE_S

LATECOMER_LOOK_S = 0.5


def watch_for_jobs_end(
    task: Task,
    leader: BeaconClient,
    then: Callable[[JobEnded], None],
    patience_s: float = LATECOMER_S,
) -> None:
    """Call `then` if the leader does not connect and its progress file says that it has ended.

    Returns when the leader has connected, or at the start deadline.
    """
    began = time.monotonic()
    while not leader.connected and time.monotonic() - began < task.start_deadline_s:
        code = leaders_exit_code(task.progress_file.with_name(f"{task.leader}.jsonl"))
        if code is not None and time.monotonic() - began > patience_s:
            then(JobEnded(code))
            return
        time.sleep(LATECOMER_LOOK_S)


def leaders_exit_code(progress: Path) -> int | None:
    """Return the exit code if the file's last line is an `end` event; else None."""
    event = last_event(progress)
    code = event.exit_code if isinstance(event, End) else None
    return None if code is None else int(code)


LOOK_S = 0.02
END_IS_HEARD_S = 1.0
"""Seconds to wait for the leader's end after the program failed: the program may fail before the
end arrives."""


def follow(
    task: Task, program: Program, progress: Progress, events: SimpleQueue[object]
) -> Outcome:
    """Run the program until it ends, or the job has ended and its grace is over."""
    progress.write("start", attempt=1)
    peers.remove_marks(task)
    leader = (
        BeaconClient(
            task.beacon,
            partial(handshake.read_secret, task),
            task.name,
            task.start_deadline_s,
            events.put,
            silent_s=task.silent_s,
            others=client.others(task),
        )
        if task.beacon
        else None
    )
    child = Child(task, program, 1, events.put)
    if leader and task.role == EVALUATOR:
        late = (task, leader, events.put)
        threading.Thread(
            target=watch_for_jobs_end, args=late, name="latecomer", daemon=True
        ).start()
    if task.role != EVALUATOR:
        child.tell(mailbox.SERVERS_READY)
    grace_ends_at, leaders_code = float("inf"), None
    while True:
        event = next_event(events, grace_ends_at) or grace_over(task, grace_ends_at, leaders_code)
        if isinstance(event, ProgramEnded):
            peers.leave_marks(task)
            ended = child.outcome(event.returncode)
            if not leader or ended.reason == endings.GPU_MISSING:
                return ended
            if leaders_code is None and task.role != EVALUATOR:
                return tell_leader(leader, task, ended, events)
            if leaders_code is not None:
                events.put(JobEnded(leaders_code))  # for a task that stays
            follows = task.role != EVALUATOR and leaders_code == 0
            stays = replace(ended, stays=is_permanent(task, ended))
            return excused_by_jobs_end(follows, ended) or stays
        if isinstance(event, Outcome):
            child.stop()
            return event
        if isinstance(event, StacksWanted):
            stacks.keep(task, "the job makes no progress")
        elif isinstance(event, AgainWanted) and starts_with_leader(task):
            child.stop()
            return outcome.because(endings.FAILED, "the job made no progress: started again")
        elif isinstance(event, JobEnded):
            goes_on_s = seconds_after_leader(task, event.exit_code)
            if goes_on_s is None:
                child.stop()
                return job_ended(task, event)
            child.tell(mailbox.JOB_ENDED)
            grace_ends_at, leaders_code = time.monotonic() + goes_on_s, event.exit_code


def starts_with_leader(task: Task) -> bool:
    """Return whether the program cannot go on after the leader's was started again.

    Programs that share variables on ps can; those of an all-reduce cannot.
    """
    return task.role != EVALUATOR and not task.has_ps


def seconds_after_leader(task: Task, code: int | None) -> float | None:
    """Return how many seconds the program may run after the leader's exit; None: stop it now."""
    if code == 0 and task.role != "ps":
        return grace_s(task)
    return FAILED_JOB_GRACE_S if code is not None and task.role == "worker" else None


def tell_leader(
    leader: BeaconClient, task: Task, ended: Outcome, events: SimpleQueue[object]
) -> Outcome:
    """Report to the leader how the program ended, and return the outcome.

    A failure does not count if the job has just succeeded. If the program is not started again,
    and the leader must know that even after it was lost itself, the outcome `stays`.
    """
    permanent = is_permanent(task, ended)
    if ended.exit_code >= 128 and not permanent:
        return ended
    news = wait_for_leader(leader, task, events)
    if news is None and ended.exit_code == 0:
        if task.success is not None:
            leader.say_always(Done(task.name))
            return replace(ended, stays=True)
        leader.say(Done(task.name))
    elif news is None:
        if permanent:
            leader.say_always(Permanent(task.name, ended.exit_code, ended.message))
        else:
            leader.say(Failed(task.name, ended.message))
        until = time.monotonic() + END_IS_HEARD_S
        while news is None and (news := next_event(events, until)) is not None:
            news = news if isinstance(news, (JobEnded, Outcome)) else None
    if isinstance(news, Outcome):
        return news
    if news is not None:
        events.put(news)  # for a task that stays
    excused = excused_by_jobs_end(isinstance(news, JobEnded) and news.exit_code == 0, ended)
    return excused or replace(ended, stays=permanent)


def is_permanent(task: Task, ended: Outcome) -> bool:
    """Return whether a program failed with an exit code after which it is not started again."""
    return ended.reason == endings.FAILED and task.restart.is_permanent(ended.exit_code)


def wait_for_jobs_end(events: SimpleQueue[object]) -> None:
    """Return when the job has ended, or this task is stopped."""
    while not isinstance(next_event(events), (JobEnded, Outcome)):
        pass


def wait_for_leader(leader: BeaconClient, task: Task, events: SimpleQueue[object]) -> object | None:
    """Wait until the leader is connected, since a short program may end before that.

    Returns None if it is connected; else the event that came first: the job's end or SIGTERM.
    """
    until = time.monotonic() + task.start_deadline_s
    while not leader.connected and time.monotonic() < until:
        event = next_event(events, time.monotonic() + LOOK_S)
        if isinstance(event, (JobEnded, Outcome)):
            return event
    return None


def excused_by_jobs_end(job_succeeded: bool, ended: Outcome) -> Outcome | None:
    """Return success for a program that failed because a successful job ended; else None."""
    if not job_succeeded or not ended.exit_code:
        return None
    message = f"after the job's end: {ended.message}"
    return replace(ended, exit_code=0, reason=endings.FINISHED, message=message, after_job=True)


def grace_s(task: Task) -> float:
    """Return the seconds for which the program may continue after the leader has finished."""
    if debugged():
        return float("inf")
    return task.evaluator_grace_s if task.role == EVALUATOR else WORKER_GRACE_S


def grace_over(task: Task, ends_at: float, leaders_code: int | None) -> Outcome | None:
    """Return the outcome if the grace is over at `ends_at` (monotonic seconds), else None.

    An evaluator that has not finished has failed. A worker has not failed; but if the leader
    finished, the worker's last steps may be missing from the result, and CUT_OFF reports this.
    """
    if time.monotonic() < ends_at:
        return None
    if leaders_code:
        return job_ended(task, JobEnded(leaders_code))
    late = f"was still running {grace_s(task):g} s after"
    if task.role == EVALUATOR:
        return outcome.because(endings.EVALUATOR_GRACE, f"the evaluator {late} the job's end")
    return outcome.because(endings.CUT_OFF, f"the program {late} the leader's end, and was stopped")


def supervise(task: Task, name: str, arguments: Sequence[str]) -> int:
    """Run the program to its end and return the exit code. If the leader ends, the job ends."""
    events: SimpleQueue[object] = SimpleQueue()
    put_signals(events, outcome.stopped, signal.SIGTERM, signal.SIGINT)
    progress = Progress(task.progress_file)
    recorder = Recorder(task)
    beacon_server, over = None, threading.Event()
    try:
        if task.is_leader and task.beacon:
            beacon_server = BeaconServer(
                task.beacon,
                handshake.make_secret(task),
                lambda heard: events.put(meaning(heard)),
                beat=lambda: beat(task),
                silent_s=task.silent_s,
            )
        program = find_program(name, arguments)
        needed = services.parse(os.environ.get(services.VARIABLE, ""))
        if unready := services.wait(task, needed, events):
            ended = unready
        elif task.is_leader:
            # Without this, requests to a server that was cut off stay in a dead connection.
            dead_connections.limit(task.silent_s, os.environ.get("TF_CONFIG", ""))
            at_step.begin(task, progress)
            watched = (task, events.put, over)
            threading.Thread(target=disk_space.watch, args=watched, daemon=True).start()
            if task.data_service:
                target = services.watch_data_service
                threading.Thread(target=target, args=watched, daemon=True).start()
            ended = Leader(task, program, progress, events, beacon_server).run()
        else:
            if task.role == EVALUATOR:
                threading.Thread(target=beats, args=(task,), name="beats", daemon=True).start()
            ended = follow(task, program, progress, events)
    except TrainerError as problem:
        ended = Outcome(problem.exit_code, endings.FAILED, str(problem))
    except OSError as problem:  # the program cannot start if its output directory is missing
        if disk_space.trouble(task) is None:
            raise
        ended = disk_space.of(task, problem)
    over.set()
    ended = disk_space.instead(task, ended)
    recorder.stop()
    ended.record(progress)
    if not ended.printed and (ended.exit_code or ended.reason == endings.CUT_OFF):
        print(f"{task.name}: {ended.headline}", file=sys.stderr, flush=True)
    if ended.decided:
        print(ended.decided, file=sys.stderr, flush=True)
    if beacon_server:
        beacon_server.announce(ended.exit_code)
        with contextlib.suppress(OSError):
            handshake.forget_secret(task)
    elif task.beacon and ended.reason == endings.GPU_MISSING:
        secret = partial(handshake.read_secret, task)
        client.send_report(task.beacon, secret, Report(ended.reason, task.name, ended.message))
    if ended.stays:
        wait_for_jobs_end(events)
        return 0  # with any other exit code, the engine would start the program again
    return ended.exit_code


def beats(task: Task) -> NoReturn:
    """Send heartbeats to the host for this evaluator, since the leader may have ended."""
    while True:
        beat(task)
        time.sleep(BEAT_S)


def beat(task: Task) -> None:
    """Send a heartbeat to the host; if this fails, the host notices the missing heartbeat."""
    with contextlib.suppress(OSError):
        task.beat_file.touch()


def meaning(heard: Heard) -> object:
    """Return the Outcome if a follower's message ends the job, else the message."""
    if isinstance(heard, Report):
        return outcome.because(heard.reason, heard.message, (heard.task,))
    return heard
