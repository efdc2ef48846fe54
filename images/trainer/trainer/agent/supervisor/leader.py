"""The leader's supervision: servers first, deadlines, and another attempt after a crash."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from queue import SimpleQueue

from trainer.agent import outcome
from trainer.agent.beacon.messages import (
    DONE,
    PERMANENT,
    TASK_NEWS,
    Heard,
    HeardAgain,
    Joined,
    Left,
    Silent,
    Unanswered,
)
from trainer.agent.beacon.server import BeaconServer
from trainer.agent.event_queue import next_event
from trainer.agent.injected import gpu_promises, mailbox
from trainer.agent.outcome import Outcome
from trainer.agent.policies import Success, how_it_ended, permanent_end
from trainer.agent.progress_file import Progress, last_event
from trainer.agent.servers import probe
from trainer.agent.servers.probe import ServersMissing, ServersReady
from trainer.agent.straggler_watch import StragglerWatch
from trainer.agent.supervisor import functions, stall
from trainer.agent.supervisor.child import Child, Program, ProgramEnded, debugged
from trainer.agent.supervisor.peers import (
    Peers,
    SilentTasks,
    Standstill,
    Stops,
    let_train,
    remove_marks,
)
from trainer.agent.supervisor.stall import Stalled, Waits
from trainer.agent.task import Task, addresses_by_task
from trainer.agent.usage import Usage, read_usage
from trainer.contract import endings
from trainer.contract.events import WAITING, End
from trainer.contract.times import WORKER_GRACE_S


@dataclass(frozen=True)
class ServersAnswered:
    """Says whether all servers were ready in an attempt."""

    attempt: int
    answer: ServersReady | ServersMissing


def ask_servers(
    task: Task, attempt: int, then: Callable[[ServersAnswered], None], cancelled: threading.Event
) -> None:
    """Call `then` with the answer: at once if there are no servers, else from a thread."""
    if not task.servers:
        then(ServersAnswered(attempt, ServersReady({})))
        return

    def wait() -> None:
        answer = probe.wait_for(task.servers, task.start_deadline_s, cancelled=cancelled)
        then(ServersAnswered(attempt, answer))

    threading.Thread(target=wait, name="probe", daemon=True).start()


def promises_broken(task: Task, ready: ServersReady, progress: Progress) -> Outcome | None:
    """Record the promised and the visible GPUs of each server.

    Returns the outcome of the job if they differ and the task checks GPUs, else None.
    """
    broken = {}
    for name, promised in task.promises.items():
        sees = ready.gpus.get(name)
        if sees is None:
            continue
        names, seen = [gpu.name for gpu in promised], list(map(gpu_promises.shown, sees))
        message = gpu_promises.broken_promise(name, promised, sees)
        progress.write("devices", of=name, promised=names, sees=seen, broken=message)
        if message:
            broken[name] = message
    if not broken or not task.gpu_check:
        return None
    return outcome.because(endings.GPU_MISSING, "; ".join(broken.values()), tuple(broken))


def run_in_thread(target: Callable[..., None], *arguments: object) -> threading.Thread:
    """Run a function in a daemon thread, and return it."""
    thread = threading.Thread(target=target, args=arguments, name=target.__module__, daemon=True)
    thread.start()
    return thread


LAST_COUNT_S = 1.0
"""The longest time that the end of an attempt waits for the last count of its functions."""


PEERS_ENDS_S = 1.0
"""Seconds to wait for a peer's end after the program failed: the program may fail before the end
arrives."""
SETTLES_S = 30.0
"""Seconds in which servers may still have dead connections to a lost leader, which they detect only
by using them."""
NO_ATTEMPT = 0
"""The number of the attempt while the leader's program has ended, and others still decide."""
TRAINS = ("chief", "worker")
"""Roles whose tasks train, so that they can decide that the job succeeded."""


def trainers(task: Task) -> list[str]:
    """Return the tasks that run the program and train, the leader among them."""
    names = [name for name in addresses_by_task(task.cluster) if name not in task.servers]
    return [name for name in names or [task.name] if name.rpartition("-")[0] in TRAINS]


class Leader:
    """Runs the leader's program, again after a crash, within the deadlines."""

    def __init__(
        self,
        task: Task,
        program: Program,
        progress: Progress,
        events: SimpleQueue[object],
        beacon_server: BeaconServer | None,
    ) -> None:
        self._task = task
        self._beacon_server = beacon_server
        self._program = program
        self._progress = progress
        self._events = events
        self._stops = Stops(task.progress_file.parent)
        expected = task.peers if task.beacon else frozenset()
        self._peers = Peers(expected, task.retries, self._stops.lately)
        self._silent = SilentTasks(task.silent_s, progress, task.name)
        self._standstill = Standstill(task.name)
        self._waits = Waits(progress, task.name)
        self._success = Success(task.success, trainers(task)) if task.success else None
        self._failures: dict[str, Outcome] = {}
        self._has_stalled = False
        # A killed leader has written no `end`.
        last = last_event(task.progress_file)
        self._came_back = last is not None and not isinstance(last, End)
        self._began = time.monotonic()
        self._peers_due_at = float("inf")
        self._job_ends_at = float("inf")
        self._ready: ServersReady | None = None
        self._child: Child | None = None
        self._counts: threading.Thread | None = None

    def run(self) -> Outcome:
        """Start the program until it finishes, fails by itself, or no attempt is left.

        If other tasks decide, wait for them after that.
        """
        attempt = 1
        while True:
            ended = self._attempt(attempt)
            if isinstance(ended, Outcome):
                return ended
            if isinstance(ended, Stalled):
                again = " after it was started again" if self._has_stalled else ""
                standing = f"no progress for {ended.seconds:.0f} s{again}"
                reason = "; ".join([standing, *self._silent.cuts()])
                if self._has_stalled or attempt > self._task.retries:
                    if self._peers.missed_ps:
                        reason += f"; {self._peers.missed_ps}"
                    elif self._peers.finished and not self._task.has_ps:
                        reason += (
                            f"; {self._peers.finished} ended with 0 and takes no part any more"
                        )
                    return stall.ended(
                        reason,
                        self._silent.cut_tasks(),
                        several=bool(self._task.peers) and not self._peers.finished,
                    )
                self._has_stalled = True
                if self._beacon_server:
                    self._waits.asked(self._beacon_server.start_again())
                attempt = self._again(attempt, reason)
                continue
            failure = self._child.outcome(ended.returncode)
            if failure.reason == endings.GPU_MISSING:
                return failure
            if not failure.exit_code:
                return self._finished(failure)
            self._progress.write("failure", exit_code=failure.exit_code)
            if self._task.restart.is_permanent(failure.exit_code):
                return self._failed(failure)
            if over := self._peers_say():
                ours = self._peers.failed_because_of(failure, over)
                return replace(ours, tasks=(self._task.name,)) if ours else over
            crash = self._again_because(ended, failure.exit_code)
            if not crash:
                of_peers = self._peers.failed(failure) or self._peers.ended_too_early(failure)
                return self._failed(of_peers or failure)
            crash = self._stops.excused(crash)
            if attempt > self._task.retries + self._stops.excuses:
                used = f"{attempt - 1} of {self._task.retries} retries used"
                # If a signal ended it, the crash is already the message.
                crash = used if failure.headline == crash else f"{crash}; {used}"
                return self._failed(
                    replace(failure.because_of(crash), tasks=self._silent.cut_tasks())
                )
            attempt = self._again(attempt, crash)

    def _again_because(self, ended: ProgramEnded, code: int) -> str:
        """Return the reason for another attempt; '' if the failure is final.

        Args:
            code: the program's exit code, which is not permanent.
        """
        crash = "" if self._child.is_final else self._crash(ended)
        if not crash and self._task.restart.is_retryable(code):
            return f"{self._task.name} ended with {code}, which is retryable"
        return crash

    def _finished(self, ended: Outcome) -> Outcome:
        """Return the outcome after the leader's program has ended well."""
        if self._child and not self._program.builtin:
            forgotten = self._child.functions().forgotten
            ended = replace(ended, in_tmp=outcome.models_in("/tmp"), forgotten=forgotten)
        if self._success is None:
            return ended
        self._success.ended_well(self._task.name)
        if self._success.is_reached:
            return replace(ended, decided=self._success.sentence())
        return self._until_decided()

    def _failed(self, failure: Outcome) -> Outcome:
        """Return the outcome after the leader's program has failed for good."""
        code, name = failure.exit_code, self._task.name
        if self._task.restart.is_permanent(code):
            failure = replace(failure, tasks=(name,), decided=permanent_end(name, code))
        if self._success is None:
            return failure
        self._success.failed(name, how_it_ended(code, self._task.restart))
        self._failures[name] = failure
        if self._success.is_out_of_reach:
            return self._out_of_reach()
        if not failure.printed:
            print(f"{name}: {failure.headline}", file=sys.stderr, flush=True)
        return self._until_decided()

    def _until_decided(self) -> Outcome:
        """Wait until the other tasks have decided, after this task's program has ended."""
        text = f"{self._task.name}: the program has ended; {self._success.waiting_sentence()}"
        print(text, file=sys.stderr, flush=True)
        self._progress.write("phase", name=WAITING)
        over = threading.Event()
        self._limit_job()
        self._watch(NO_ATTEMPT, over)
        try:
            while True:
                event = self._next_event()
                if isinstance(event, TASK_NEWS):
                    if decision := self._hear(event):
                        return decision
                elif isinstance(event, Outcome):
                    return self._ended_while_others_run(event)
                elif isinstance(event, Stalled) and event.attempt == NO_ATTEMPT:
                    why = f"no progress for {event.seconds:.0f} s"
                    stall.keep_stacks(self._task, why, self._beacon_server)
                    return stall.ended(why, self._success.running)
        finally:
            over.set()

    def _ended_while_others_run(self, event: Outcome) -> Outcome:
        """Return the outcome of a job that was stopped, or reached its deadline."""
        if event.reason == endings.STOPPED and self._beacon_server:
            self._beacon_server.stopping()
        if event.reason == endings.JOB_DEADLINE:
            stall.keep_stacks(self._task, event.headline, self._beacon_server)
            return replace(event, tasks=self._success.running)
        return event

    def _again(self, attempt: int, reason: str) -> int:
        """Report that another attempt begins, and why; return its number."""
        self._progress.write("retry", attempt=attempt + 1, reason=reason)
        print(f"{self._task.name}: {reason}; attempt {attempt + 1}", file=sys.stderr, flush=True)
        return attempt + 1

    def _attempt(self, attempt: int) -> Outcome | ProgramEnded | Stalled:
        """Make one attempt; return an Outcome if we ended it, ProgramEnded if the program ended."""
        self._progress.write("start", attempt=attempt)
        self._stops.begin_attempt()
        self._ready = None
        self._counts = None
        self._peers.begin_attempt()
        self._waits.begin_attempt()
        self._peers_due_at = time.monotonic() + self._task.start_deadline_s
        cancelled = threading.Event()
        run_in_thread(self._standstill.watch, cancelled)
        ask_servers(self._task, attempt, self._events.put, cancelled)
        remove_marks(self._task)
        self._child = Child(self._task, self._program, attempt, self._events.put)
        stragglers = StragglerWatch(self._task, self._progress, self._used, self._child.finished)
        try:
            while True:
                event = self._next_event()
                if getattr(event, "attempt", attempt) != attempt:
                    continue  # it belongs to an earlier attempt
                if isinstance(event, ProgramEnded):
                    return event
                over: Outcome | Stalled | None = None
                if isinstance(event, ServersAnswered):
                    over = self._servers_answered(event.answer, attempt, cancelled)
                elif isinstance(event, Stalled):
                    why = f"no progress for {event.seconds:.0f} s"
                    stall.keep_stacks(self._task, why, self._beacon_server)
                    over = event
                    if waits := self._child.waits_for():  # it has trained to its end
                        over = stall.ended(f"{why}: {waits}", ())
                elif isinstance(event, TASK_NEWS):
                    over = self._hear(event)
                elif isinstance(event, Outcome):
                    if self._beacon_server and event.reason == endings.STOPPED:
                        self._beacon_server.stopping()
                    if event.reason == endings.JOB_DEADLINE:
                        stall.keep_stacks(self._task, event.headline, self._beacon_server)
                    over = event
                if over:
                    if isinstance(over, Outcome) and over.decided and not over.exit_code:
                        self._let_end()
                    self._child.stop()
                    return over
        finally:
            cancelled.set()
            stragglers.end()
            if self._counts:
                self._counts.join(LAST_COUNT_S)

    def _let_end(self) -> None:
        """Give the program its grace to end by itself, since others have decided the job."""
        self._child.tell(mailbox.JOB_ENDED)
        until = float("inf") if debugged() else time.monotonic() + WORKER_GRACE_S
        while (event := next_event(self._events, until)) is not None:
            if isinstance(event, (ProgramEnded, Outcome)):
                return

    def _servers_answered(
        self, answer: ServersReady | ServersMissing, attempt: int, cancelled: threading.Event
    ) -> Outcome | None:
        """Let the program begin; return an Outcome if a server or its promised GPUs are missing."""
        if isinstance(answer, ServersMissing):
            return outcome.because(endings.START_DEADLINE, str(answer), answer.tasks)
        broken = promises_broken(self._task, answer, self._progress)
        if not broken:
            self._servers_ready(answer, attempt, cancelled)
        return broken

    def _hear(self, event: Heard) -> Outcome | None:
        """Record a message about another task; return an Outcome if it ends the job.

        Until all servers answer, only the start deadline applies to a silent task.
        """
        self._waits.heard(event, time.monotonic())
        if isinstance(event, (Joined, Left)):
            self._silent.moved(event)
            return self._decided(event, self._peers.heard(event))
        if isinstance(event, Unanswered):
            self._silent.between(event, self._beacon_server.quiet() if self._beacon_server else {})
            return None
        over = self._silent.heard(event) if self._ready is not None else None
        return self._decided(event, over)

    def _decided(self, event: Heard, over: Outcome | None) -> Outcome | None:
        """Count a task that has ended well or failed for good; return an Outcome if that decides.

        Args:
            over: the outcome of the job if the leader alone decided.
        """
        success = self._success
        if success is None or not success.counts(event.task):
            return over
        if isinstance(event, (Joined, HeardAgain)):
            success.is_back(event.task)
        elif isinstance(event, Left) and event.how == DONE:
            success.ended_well(event.task)
            if success.is_reached:
                decided = success.sentence()
                return Outcome(0, endings.FINISHED, decided, decided=decided)
        if over is None:
            return None
        is_news = success.failed(event.task, self._how_it_failed(event))
        self._failures[event.task] = over
        if success.is_out_of_reach:
            return self._out_of_reach()
        if is_news:
            print(f"{self._task.name}: {over.headline}", file=sys.stderr, flush=True)
        return None

    def _out_of_reach(self) -> Outcome:
        """Return the outcome of a job that cannot succeed any more: that of the first failure."""
        first = next(iter(self._success.missed))
        return replace(self._failures[first], decided=self._success.sentence())

    def _how_it_failed(self, event: Heard) -> str:
        """Return how a task failed for good, as the end of a sentence."""
        if isinstance(event, Silent):
            return f"was silent for {event.seconds:.0f} s"
        if isinstance(event, Left) and event.how == PERMANENT and event.exit_code is not None:
            return how_it_ended(event.exit_code, self._task.restart)
        retries = self._task.retries
        return f"failed {retries + 1} times (retries = {retries})" if retries else "failed"

    def _used(self) -> dict[str, Usage]:
        """Return the usage of each task of the job."""
        others = self._beacon_server.used() if self._beacon_server else {}
        return {**others, self._task.name: read_usage()}

    def _servers_ready(self, ready: ServersReady, attempt: int, over: threading.Event) -> None:
        self._ready = ready
        self._watch(attempt, over)
        folder = self._task.progress_file.parent
        of_program = (self._progress, self._child.functions, over, self._program.builtin)
        self._counts = run_in_thread(functions.watch, self._task.name, folder, *of_program)
        self._progress.write("ready")
        self._limit_job()
        let_train(self._task, self._program, self._child, self._peers, over)

    def _limit_job(self) -> None:
        """Let the job's deadline begin, unless it has begun."""
        if self._job_ends_at == float("inf") and self._task.job_deadline_s:
            self._job_ends_at = time.monotonic() + self._task.job_deadline_s

    def _watch(self, attempt: int, over: threading.Event) -> None:
        """Watch, in threads, whether the job makes progress and its servers answer."""
        then = (self._events.put, over)
        run_in_thread(stall.watch, self._task, attempt, self._used, self._waits, *then)
        if self._task.servers and self._task.silent_s:
            servers, moves = self._task.servers, self._silent.moves
            run_in_thread(probe.watch_servers, servers, self._task.silent_s, moves, *then)

    def _next_event(self) -> object:
        """Wait for the next event and return it, or the Outcome of a deadline that passes first."""
        peers_due_at = self._peers_due_at if self._peers.missing else float("inf")
        event = next_event(self._events, min(self._job_ends_at, peers_due_at))
        if event is not None:
            return event
        if peers_due_at < self._job_ends_at:
            return self._peers.missing_outcome(self._task.start_deadline_s)
        after = f"after {self._task.job_deadline_s:g} s"
        said = f"the program was still running {after}; {stall.SHOWN}"
        if waits := self._child.waits_for() if self._child else "":
            said = f"the program had not ended {after}: {waits}"
        elif self._peers.missed_ps:
            said += f"; {self._peers.missed_ps}"
        return outcome.because(endings.JOB_DEADLINE, said)

    def _peers_say(self) -> Outcome | None:
        """Read events of peers that left when the program failed; an Outcome if one ends it."""
        until = time.monotonic() + PEERS_ENDS_S
        while self._peers.any and (event := next_event(self._events, until)) is not None:
            if isinstance(event, TASK_NEWS) and (over := self._hear(event)):
                return over
            if isinstance(event, Outcome):
                return event
        return None

    def _crash(self, ended: ProgramEnded) -> str:
        """Return the reason for another attempt; '' if the program failed by itself."""
        if ended.returncode < 0:
            return outcome.program_ended(ended.returncode).message
        lost = [self._peers.lost()] if self._peers.lost() else []
        if self._ready is not None and self._task.servers:
            lost += probe.lost_since(self._ready, self._task.servers)
        if self._beacon_server:
            lost += self._silent.lately(self._beacon_server.quiet())
        lost += self._standstill.lately()
        if self._came_back and not lost and time.monotonic() - self._began < SETTLES_S:
            self._came_back = False
            lost = [f"{self._task.name} had been lost itself"]
        return "; ".join(lost)
