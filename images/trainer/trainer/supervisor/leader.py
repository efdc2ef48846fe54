"""The leader's supervision: servers first, deadlines, and another attempt after a crash."""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import dataclass
from queue import SimpleQueue

from trainer import outcome
from trainer.beacon.server import BeaconServer, Joined, Left
from trainer.events import Progress
from trainer.injected import gpu_check, mailbox
from trainer.outcome import Outcome
from trainer.queue import next_event
from trainer.servers import probe
from trainer.servers.probe import ServersMissing, ServersReady
from trainer.supervisor.child import Child, Program, ProgramEnded
from trainer.supervisor.peers import Peers
from trainer.task import Task

PEERS_SAY_S = 1.0
"""A program may fail over a peer's death before the peer's end is heard of."""


@dataclass(frozen=True)
class ServersAsked:
    """The answer to one attempt's question whether all servers are there."""

    attempt: int
    answer: ServersReady | ServersMissing


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
        self._peers = Peers(task.peers if task.beacon else frozenset(), task.retries)
        self._peers_due_at = float("inf")
        self._job_ends_at = float("inf")
        self._ready: ServersReady | None = None
        self._child: Child | None = None

    def run(self) -> Outcome:
        """Attempt until the program finishes, fails by itself, or no attempt is left."""
        attempt = 1
        while True:
            ended = self._attempt(attempt)
            if isinstance(ended, Outcome):
                return ended
            failure = self._child.outcome(ended.returncode)
            if not failure.exit_code or failure.reason == outcome.GPU_MISSING:
                return failure
            self._progress.write("failure", exit_code=failure.exit_code)
            over = self._peers_say()
            crash = "" if over else self._crash(ended)
            if not crash:
                return over or self._peers.failed(failure) or failure
            if attempt > self._task.retries:
                return Outcome(
                    failure.exit_code,
                    outcome.FAILED,
                    f"{failure.message} ({crash}; {attempt - 1} of {self._task.retries} retries"
                    " used)",
                )
            attempt += 1
            self._progress.write("retry", attempt=attempt, reason=crash)
            print(f"{self._task.name}: {crash}; attempt {attempt}", file=sys.stderr, flush=True)

    def _attempt(self, attempt: int) -> Outcome | ProgramEnded:
        """One attempt: an Outcome if it was ended, ProgramEnded if it ended itself."""
        self._progress.write("start", attempt=attempt)
        self._ready = None
        self._peers.begin_attempt()
        self._peers_due_at = time.monotonic() + self._task.start_deadline_s
        cancelled = threading.Event()
        self._ask_servers(attempt, cancelled)
        self._child = Child(self._task, self._program, attempt, self._events.put)
        try:
            while True:
                event = self._next_event()
                match event:
                    case ServersAsked(attempt=of, answer=ServersReady() as ready) if of == attempt:
                        if broken := self._promises_broken(ready):
                            self._child.stop()
                            return broken
                        self._servers_ready(ready)
                    case ServersAsked(attempt=of, answer=ServersMissing() as gap) if of == attempt:
                        self._child.stop()
                        return outcome.because(outcome.START_DEADLINE, str(gap), gap.tasks)
                    case ProgramEnded(attempt=of) if of == attempt:
                        return event
                    case Joined() | Left():
                        if over := self._peers.heard(event):
                            self._child.stop()
                            return over
                    case Outcome():
                        if self._beacon_server and event.reason == outcome.STOPPED:
                            self._beacon_server.stopping()
                        self._child.stop()
                        return event
        finally:
            cancelled.set()

    def _ask_servers(self, attempt: int, cancelled: threading.Event) -> None:
        """Put ServersAsked on the queue, from a thread unless none serves."""
        if not self._task.servers:
            self._events.put(ServersAsked(attempt, ServersReady({})))
            return

        def ask() -> None:
            answer = probe.wait_for(
                self._task.servers, self._task.start_deadline_s, cancelled=cancelled
            )
            self._events.put(ServersAsked(attempt, answer))

        threading.Thread(target=ask, name="probe", daemon=True).start()

    def _promises_broken(self, ready: ServersReady) -> Outcome | None:
        """Compare the GPUs that servers show with what they were promised, and write both down."""
        broken = {}
        for name, promised in self._task.promises.items():
            sees = ready.gpus.get(name)
            if sees is None:
                continue
            self._progress.write("devices", of=name, promised=list(promised), sees=list(sees))
            if message := gpu_check.broken(name, promised, sees):
                broken[name] = message
        if not broken or not self._task.gpu_check:
            return None
        return outcome.because(outcome.GPU_MISSING, "; ".join(broken.values()), tuple(broken))

    def _servers_ready(self, ready: ServersReady) -> None:
        self._ready = ready
        self._progress.write("ready")
        if self._job_ends_at == float("inf") and self._task.job_deadline_s:
            self._job_ends_at = time.monotonic() + self._task.job_deadline_s
        self._child.tell(mailbox.SERVERS_READY)

    def _next_event(self) -> object:
        """The next event, or the Outcome of the deadline that comes first."""
        peers_due_at = self._peers_due_at if self._peers.missing else float("inf")
        event = next_event(self._events, min(self._job_ends_at, peers_due_at))
        if event is not None:
            return event
        if peers_due_at < self._job_ends_at:
            return self._peers.missing_outcome(self._task.start_deadline_s)
        return outcome.because(
            outcome.JOB_DEADLINE,
            f"the program was still running after {self._task.job_deadline_s:g} s",
        )

    def _peers_say(self) -> Outcome | None:
        """Hear of peers that left about when the program failed; an Outcome if one ends it."""
        until = time.monotonic() + PEERS_SAY_S
        while self._peers.any and (event := next_event(self._events, until)) is not None:
            match event:
                case Joined() | Left():
                    if over := self._peers.heard(event):
                        return over
                case Outcome():
                    return event
        return None

    def _crash(self, ended: ProgramEnded) -> str:
        """Why this failure deserves another attempt; '' if the program failed by itself."""
        if ended.returncode < 0:
            return outcome.program_ended(ended.returncode).message
        lost = [self._peers.lost()] if self._peers.lost() else []
        if self._ready is not None and self._task.servers:
            lost += probe.lost_since(self._ready, self._task.servers)
        return "; ".join(lost)
