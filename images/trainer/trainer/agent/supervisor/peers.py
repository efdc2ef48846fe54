"""The other tasks of the job, as the leader sees them.

It tracks tasks that have connected, were lost, have failed, or are silent (frozen, or cut off from
the leader). A task that was stopped by SIGTERM has not failed: a user restarts it, or a node is
drained. Its `end` event reports this.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path

from trainer.agent import outcome
from trainer.agent.beacon.messages import (
    DONE,
    FAILED,
    LOST,
    PERMANENT,
    HeardAgain,
    Joined,
    Left,
    Silent,
    Unanswered,
)
from trainer.agent.injected import mailbox
from trainer.agent.outcome import Outcome
from trainer.agent.policies import MOST_NAMED, permanent_end
from trainer.agent.progress_file import Progress, parsed
from trainer.agent.supervisor.child import Child, Program
from trainer.agent.task import EVALUATOR, Task, is_data_task, trains
from trainer.contract import endings, heartbeat
from trainer.contract.endings import EXIT_FAILED, STOPPED
from trainer.contract.events import End
from trainer.contract.times import BEAT_S, HELP_S

IMPORTS_PATIENCE_S = 20.0
"""Seconds for the imports, once all tasks are connected and the leader's program has imported
TensorFlow: another task's program need not."""
LONGER = 1.5
"""Times as long as the leader's the others' graphs may take."""
LOOK_S = 0.05

COMPARED = 4_000
"""The number of characters by which messages are compared: a peer's may arrive truncated."""
_OF_A_PROCESS = re.compile(r"0x[0-9a-f]+|[\s+-]{0,9}(?<!\d)\d+\.\d*(e[+-]?\d+)?\s{0,9}")
"""Addresses of objects, and values such as random weights, which differ between tasks."""
_ECHO = re.compile(
    r"\b(Unavailable|Aborted|Cancelled|DeadlineExceeded)Error\b|[Cc]onnection re(set|fused)"
    r"|connection (\S+ )*was lost|coordination service|failed to connect|Socket closed"
)
"""Messages of programs that fail because another task has failed."""


class Peers:
    """Records which of the expected tasks have connected, were lost, or have failed.

    Docker's restart policy restarts a lost or failed peer `retries` times. If a peer fails more
    often, or with a permanent exit code, it has failed for good. A peer that was `stopped` from
    outside has not failed.
    """

    def __init__(
        self,
        expected: frozenset[str],
        retries: int,
        stopped: Callable[[], frozenset[str]] = frozenset,
    ) -> None:
        self._expected = expected
        self._retries = retries
        self._stopped = stopped
        self._here: set[str] = set()
        self._awaited = set(expected)
        self._ends: Counter[str] = Counter()
        self._gone: set[str] = set()
        self._left: list[Left] = []
        self._finished: dict[str, None] = {}

    def begin_attempt(self) -> None:
        """Forget which tasks left in earlier attempts; all are needed again that can still come."""
        self._left = []
        self._awaited = set(self._expected - self._here - self._gone)

    @property
    def any(self) -> bool:
        return bool(self._expected)

    @property
    def finished(self) -> str:
        """Return the names of the peers that have ended well; '' if there are none."""
        return _named(list(self._finished))

    @property
    def missed_ps(self) -> str:
        """Return a sentence about the ps whose programs have ended well; '' if none has."""
        ended = _named([name for name in self._finished if name.startswith("ps-")])
        because = "a ps has to stay until the job's end, as `server.join()` does"
        return f"{ended} had already ended, with 0: {because}" if ended else ""

    @property
    def missing(self) -> tuple[str, ...]:
        """Return the tasks that have not connected in this attempt, in order."""
        return tuple(sorted(self._awaited, key=by_number))

    def missing_outcome(self, deadline_s: float) -> Outcome:
        """Return the outcome of a job whose tasks did not all connect in time."""
        missing = self.missing
        again = " after it was started again" if self._ends else ""
        message = (
            f"{len(missing)} of {len(self._expected) + 1} tasks that run the program did not appear"
            f" within {deadline_s:g} s{again}: {', '.join(missing)}"
        )
        return outcome.because(endings.START_DEADLINE, message, missing)

    def heard(self, event: Joined | Left) -> Outcome | None:
        """Record the event; return the Outcome of a peer that has failed for good."""
        if event.task not in self._expected:
            if isinstance(event, Left) and is_data_task(event.task):
                self._left.append(event)  # a program may fail over it, and is then started again
            return None
        self._finished.pop(event.task, None)
        if isinstance(event, Joined) or event.how == DONE:
            self._here.add(event.task)
            self._awaited.discard(event.task)
            if isinstance(event, Left):
                self._finished[event.task] = None
            return None
        self._here.discard(event.task)
        if event.how == PERMANENT:
            return self._failed_for_good(event)
        self._left.append(event)
        if event.how == LOST and event.task in self._stopped():
            return None
        self._ends[event.task] += 1
        if self._ends[event.task] <= self._retries:
            return None
        return self._failed_for_good(event)

    def _failed_for_good(self, event: Left) -> Outcome:
        self._gone.add(event.task)
        self._awaited.discard(event.task)
        times, again, decided = self._ends[event.task], "", ""
        if event.how == PERMANENT:
            decided = permanent_end(event.task, event.exit_code or EXIT_FAILED)
        elif self._retries:
            retries = "1 retry" if self._retries == 1 else f"{self._retries} retries"
            again = f" ({times} times; {retries})"
        message = f"{failure_sentence(event)}{again}"
        return Outcome(EXIT_FAILED, endings.FAILED, message, (event.task,), decided=decided)

    def lost(self) -> str:
        """Return which peers were lost in this attempt; '' if none was lost."""
        names = dict.fromkeys(event.task for event in self._left if event.how == LOST)
        return "; ".join(f"{name} was lost" for name in names)

    def failed(self, leaders: Outcome) -> Outcome | None:
        """Return the outcome of the first peer whose program failed by itself in this attempt.

        Returns None if the leader's program failed with the same message (all programs reject an
        invalid argument), or if the peer failed only because its connection was lost.
        """
        ours = leaders.message
        comparable = _comparable(ours)
        for event in self._left:
            same = _comparable(event.message) == comparable
            if event.how == FAILED and not same and not _is_echo(event.message, ours):
                return Outcome(
                    leaders.exit_code, endings.FAILED, failure_sentence(event), (event.task,)
                )
        return None

    def failed_because_of(self, leaders: Outcome, peers: Outcome) -> Outcome | None:
        """Return the leader's outcome if a peer failed for good only because the leader's did.

        Args:
            peers: the outcome of the peer's failure, after which the job cannot go on.
        """
        if peers.decided or not _is_echo(peers.message, leaders.message):
            return None
        return leaders.because_of(f"after it, {peers.headline}")

    def ended_too_early(self, leaders: Outcome) -> Outcome | None:
        """Return the outcome of a leader whose connections were closed by peers that ended well.

        Returns None if no peer has ended, or if the leader's program failed for another reason.
        """
        if not self._finished or not _ECHO.search(leaders.message):
            return None
        return leaders.because_of(
            self.missed_ps
            or f"{self.finished} had already ended, with 0: tasks that train together must take the"
            " same number of steps, and each must save the model, not only one of them"
        )


def _comparable(message: str) -> str:
    """Return what a program's error has in common with the same error of another task."""
    return _OF_A_PROCESS.sub("0", message)[:COMPARED]


def _named(names: Sequence[str]) -> str:
    """Return the names as a list in words, of which at most MOST_NAMED are written."""
    more = len(names) - MOST_NAMED
    listed = ", ".join(names[:MOST_NAMED])
    return f"{listed} and {more} more" if more > 0 else listed


def _is_echo(message: str, ours: str) -> bool:
    """Whether a program failed with `message` only because the one with `ours` had failed."""
    return bool(_ECHO.search(message) and not _ECHO.search(ours))


def failure_sentence(event: Left) -> str:
    """Return a line about a peer that failed (its message), or that was lost."""
    return f"{event.task}: {event.message}" if event.message else f"{event.task} was lost"


def by_number(name: str) -> tuple[str, int]:
    """Return a sort key for task names: `worker-10` comes after `worker-2`."""
    role, _, index = name.rpartition("-")
    return role, int(index)


def mark(task: Task, name: str, suffix: str) -> Path:
    """Return the path of a mark of task `name`: its program has come so far, or has ended."""
    return task.progress_file.with_name(f"{name}{suffix}")


def remove_marks(task: Task) -> None:
    """Remove this task's marks of an earlier run."""
    for suffix in (mailbox.IMPORTED, mailbox.BUILT):
        with contextlib.suppress(OSError):
            mark(task, task.name, suffix).unlink(missing_ok=True)


def leave_marks(task: Task) -> None:
    """Write the marks after this task's program has ended, so that no task waits for it."""
    for suffix in (mailbox.IMPORTED, mailbox.BUILT):
        with contextlib.suppress(OSError):
            mark(task, task.name, suffix).touch()


class Marks:
    """Looks for the marks of some tasks; it looks no more for those that it has found."""

    def __init__(self, task: Task, names: Iterable[str]) -> None:
        self._missing = {
            suffix: [mark(task, name, suffix) for name in names]
            for suffix in (mailbox.IMPORTED, mailbox.BUILT)
        }

    def are_left(self, suffix: str) -> bool:
        """Return whether all of them have left this mark."""
        missing = self._missing[suffix]
        while missing and missing[-1].exists():
            missing.pop()
        return not missing


class Together:
    """Decides when the leader's program may begin to train; `now` in seconds of a monotonic clock.

    It waits until the programs of all other tasks have built their graphs, but not much longer
    after their imports than its own graph took: an Estimator's workers sleep before they build.
    """

    def __init__(self) -> None:
        self._connected_at = self._imported_at = self._built_at = self._all_imported_at = inf

    def may_train(
        self, now: float, *, connected: bool, imported: bool, built: bool, others: tuple[bool, bool]
    ) -> bool:
        """Return whether it may.

        Args:
            connected: whether all other tasks have connected.
            imported: whether its own program has imported TensorFlow, and `built` its graph.
            others: whether all others have imported TensorFlow, and built their graphs.
        """
        all_imported, all_built = others
        self._connected_at = min(now, self._connected_at) if connected else inf
        self._imported_at = min(self._imported_at, now if imported or built else inf)
        self._built_at = min(self._built_at, now if built else inf)
        patient_until = max(self._connected_at, self._imported_at) + IMPORTS_PATIENCE_S
        gone_on = all_imported or now > patient_until
        self._all_imported_at = min(self._all_imported_at, now if gone_on else inf)
        if inf in (self._connected_at, self._built_at):
            return False
        own_graph_s = self._built_at - self._imported_at
        return all_built or now > self._all_imported_at + LONGER * own_graph_s


def let_train(
    task: Task, program: Program, child: Child, peers: Peers, over: threading.Event
) -> None:
    """Let the leader's program use its servers, and begin to train together with the others.

    Replicas that share variables on a ps do not wait for each other: the first replica trains
    alone, and a short job could end before a late replica starts. A built-in program waits for the
    others itself. The start deadline applies until all tasks have connected.
    """
    child.tell(mailbox.SERVERS_READY)
    if program.builtin or not task.peers or "ps" not in task.cluster:
        child.tell(mailbox.PEERS_READY)
        return

    def wait() -> None:
        together = Together()
        own, others = Marks(task, (task.name,)), Marks(task, task.peers)
        while not over.wait(LOOK_S):
            if together.may_train(
                time.monotonic(),
                connected=not peers.missing,
                imported=own.are_left(mailbox.IMPORTED),
                built=own.are_left(mailbox.BUILT),
                others=(others.are_left(mailbox.IMPORTED), others.are_left(mailbox.BUILT)),
            ):
                child.tell(mailbox.PEERS_READY)
                return

    threading.Thread(target=wait, name="peers", daemon=True).start()


LATELY_S = 30.0
"""Seconds after a silence in which TensorFlow may still fail because of it."""


class SilentTasks:
    """Reports each silence of one attempt once, and ends the job if a silence lasts too long."""

    def __init__(self, silent_s: float, progress: Progress, leader: str) -> None:
        self._silent_s = silent_s
        self._progress = progress
        self._leader = leader
        self._said: set[str] = set()
        self._gone: set[str] = set()
        self._lately: dict[str, tuple[float, float]] = {}
        self._unanswered: dict[tuple[str, str], tuple[float, float]] = {}
        self._back: dict[str, float] = {}
        self.moves: Counter[str] = Counter()
        """How often each task's process has ended or begun."""

    def heard(self, event: Silent | HeardAgain) -> Outcome | None:
        """Write a silence event; return an Outcome if a needed task is silent for too long."""
        if isinstance(event, HeardAgain):
            self._lately[event.task] = (time.monotonic(), event.seconds)
            self._back[event.task] = time.monotonic()
            if event.task in self._said:
                self._progress.write("heard", of=event.task, seconds=round(event.seconds, 1))
            self._said.discard(event.task)
            return None
        last_heard = time.time() - event.seconds
        details = {"server": event.server, "gone": event.task in self._gone}
        message = heartbeat.sentence(event.task, event.seconds, last_heard, **details)
        if event.task not in self._said:
            self._said.add(event.task)
            self._progress.write(
                "silent", of=event.task, last_heard=round(last_heard, 3), **details
            )
            print(f"{self._leader}: {message}", file=sys.stderr, flush=True)
        limit_s = heartbeat.limit_s(self._silent_s, server=event.server)
        if not trains(event.task) or event.seconds < limit_s + HELP_S:
            return None
        return outcome.because(endings.SILENT, message, (event.task,))

    def between(self, event: Unanswered, quiet: Mapping[str, float]) -> None:
        """Write an event that two tasks reach the leader, but not each other.

        Args:
            event: the report of one of the two tasks.
            quiet: the tasks that are silent to the leader now; for these no cut is reported.
        """
        now, pair = time.monotonic(), (event.task, event.by)
        if set(pair) & {*quiet, *self._said, *self._gone}:
            return
        # While a task was silent to the leader, too, this was no cut between two tasks.
        back = max(self._back.get(task, -inf) for task in pair)
        event = replace(event, seconds=min(event.seconds, now - back))
        if event.seconds < self._silent_s:
            return
        at, _ = self._unanswered.get(pair, (-LATELY_S, 0.0))
        self._unanswered[pair] = (now, event.seconds)
        if now - at < LATELY_S:
            return
        self._progress.write(
            "unanswered", of=event.task, by=event.by, seconds=round(event.seconds, 1)
        )
        print(f"{self._leader}: {unanswered_sentence(event)}", file=sys.stderr, flush=True)

    def cuts(self) -> list[str]:
        """Return a sentence for each network cut between two tasks within LATELY_S."""
        return [unanswered_sentence(event) for event in self._lately_unanswered()]

    def cut_tasks(self) -> tuple[str, ...]:
        """Return the tasks at both ends of these cuts."""
        ends = (name for event in self._lately_unanswered() for name in (event.by, event.task))
        return tuple(dict.fromkeys(ends))

    def _lately_unanswered(self) -> list[Unanswered]:
        since = time.monotonic() - LATELY_S
        return [
            Unanswered(task, by, seconds)
            for (task, by), (at, seconds) in self._unanswered.items()
            if at > since
        ]

    def moved(self, event: Joined | Left) -> None:
        """Record that a silent task was lost, or has connected again from a new process."""
        self.moves[event.task] += 1
        self._said.discard(event.task)
        if isinstance(event, Left):
            self._gone.add(event.task)
            if event.how == LOST:  # what fails from now on fails because of the loss
                self._lately.pop(event.task, None)
        else:
            self._gone.discard(event.task)
            self._back[event.task] = time.monotonic()

    def lately(self, quiet: Mapping[str, float]) -> list[str]:
        """Return a line for each task that was silent within LATELY_S, or is `quiet` now."""
        since = time.monotonic() - LATELY_S
        silences = {task: length for task, (at, length) in self._lately.items() if at > since}
        silences |= quiet
        return [
            f"{task} was silent for {seconds:.0f} s"
            for task, seconds in silences.items()
            if not task.startswith(EVALUATOR)
        ] + self.cuts()


STANDS_STILL_S = 5.0
"""Seconds without a look after which this process stood still: TensorFlow's own heartbeats come
every 5 s, and its coordination service gives a task up after 10 s."""


class Standstill:
    """Notes when this task stood still: its machine slept, or its container was paused.

    The other tasks slept with it, and none was silent to another. TensorFlow, which counts that
    time, takes them for lost.
    """

    def __init__(self, task: str) -> None:
        self._task = task
        self._looked_at = inf
        self._ended_at = -inf
        self._seconds = 0.0

    def watch(self, over: threading.Event) -> None:
        """Look every BEAT_S until the attempt is over; to be run in a thread."""
        self._looked_at = time.clock_gettime(time.CLOCK_BOOTTIME)
        while not over.wait(BEAT_S):
            self.look(time.clock_gettime(time.CLOCK_BOOTTIME))

    def look(self, now: float) -> None:
        """Compare with the last look, in seconds of a clock that runs while the machine sleeps."""
        stood_still, self._looked_at = now - self._looked_at, now
        if stood_still > STANDS_STILL_S:
            self._ended_at, self._seconds = now, stood_still

    def lately(self, now: float | None = None) -> list[str]:
        """Return a line if the task stood still within LATELY_S.

        It looks itself, too: a program may fail before the thread that watches has looked again.
        """
        now = time.clock_gettime(time.CLOCK_BOOTTIME) if now is None else now
        self.look(now)
        if now - self._ended_at > LATELY_S:
            return []
        return [
            f"{self._task} had stood still for {self._seconds:.0f} s"
            " (the machine slept, or the container was paused)"
        ]


def unanswered_sentence(event: Unanswered) -> str:
    """Return a sentence about two tasks that do not reach each other."""
    return (
        f"{event.by} has had no answer from {event.task} for {event.seconds:.0f} s"
        " (the network between them is cut; both answer the leader)"
    )


STOPPED_LATELY_S = 30.0
"""Seconds after a task's end in which it may be the cause of another task's failure."""
TAIL = 64 * 1024
"""The number of bytes at the end of a progress file that are searched for its last `end`."""


def stopped_tasks(folder: Path, since: float) -> frozenset[str]:
    """Return the names of the tasks that were stopped from outside since Unix time `since`."""
    return frozenset(path.stem for path in folder.glob("*.jsonl") if _was_stopped(path, since))


def _was_stopped(path: Path, since: float) -> bool:
    for entry in filter(None, map(parsed, _tail(path).splitlines())):
        was_stopped = isinstance(entry.event, End) and entry.event.reason == STOPPED
        if was_stopped and entry.time is not None and entry.time >= since:
            return True
    return False


def _tail(path: Path) -> bytes:
    """Return the end of a regular file, else b"": programs can write into this folder, too."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        about = os.fstat(file)
        if not stat.S_ISREG(about.st_mode):
            return b""
        return os.pread(file, TAIL, max(0, about.st_size - TAIL))
    except OSError:
        return b""
    finally:
        os.close(file)


class Stops:
    """Decides which failures of a leader's program were caused by stopped tasks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._began = time.time()
        self.excuses = 0
        """The number of attempts that ended because a task was stopped from outside; they do not
        count as `retries`."""

    def begin_attempt(self) -> None:
        self._began = time.time()

    def lately(self) -> frozenset[str]:
        """Return the tasks that were stopped from outside recently."""
        return stopped_tasks(self._folder, time.time() - STOPPED_LATELY_S)

    def excused(self, crash: str) -> str:
        """Return the reason of a crash; if a stopped task caused it, the reason names that task."""
        stopped = stopped_tasks(self._folder, self._began)
        names = [name for name in re.findall(r"[a-z_]+-\d+", crash) if name in stopped]
        if not names:
            return crash
        self.excuses += 1
        return f"{crash} (stopped from outside: {', '.join(dict.fromkeys(names))})"
