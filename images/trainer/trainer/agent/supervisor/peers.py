"""The tasks that run the program beside the leader's, as the leader hears of them."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from trainer.agent import outcome
from trainer.agent.beacon.heard import DONE, FAILED, LOST, Joined, Left
from trainer.agent.injected import mailbox
from trainer.agent.outcome import Outcome
from trainer.agent.supervisor.child import Child, Program
from trainer.agent.task import Task
from trainer.contract import endings
from trainer.contract.endings import EXIT_FAILED

PATIENCE_S = 20.0
"""For the imports, from when all tasks are there: a program need not import TensorFlow at all."""
LOOK_S = 0.05

SAME = 4_000
"""Characters by which messages are compared: a peer's may be cut on its way."""
_ECHO = re.compile(
    r"\b(Unavailable|Aborted|Cancelled|DeadlineExceeded)Error\b|[Cc]onnection re(set|fused)"
    r"|connection (\S+ )*was lost|coordination service|failed to connect|Socket closed"
)
"""What programs say that fail because another task has: no cause of its own."""


class Peers:
    """Who came, who was lost, and who failed, of the tasks that are expected.

    A lost or failed peer comes back by Docker's restart policy, `retries` times. One that fails
    more often ends the job: no other task could say why the rest waits. One that was
    `stopped` from outside has not failed.
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
        self._left: list[Left] = []

    def begin_attempt(self) -> None:
        """Forget who left in an earlier attempt of the leader's program; all are needed again."""
        self._left = []
        self._awaited = set(self._expected - self._here)

    @property
    def any(self) -> bool:
        return bool(self._expected)

    @property
    def missing(self) -> tuple[str, ...]:
        """Those that have not been there in this attempt, in order."""
        return tuple(sorted(self._awaited, key=by_number))

    def missing_outcome(self, deadline_s: float) -> Outcome:
        """The outcome of a job whose tasks did not all appear in time."""
        missing = self.missing
        again = " after it was started again" if self._ends else ""
        message = (
            f"{len(missing)} of {len(self._expected)} tasks that run the program did not appear"
            f" within {deadline_s:g} s{again}: {', '.join(missing)}"
        )
        return outcome.because(endings.START_DEADLINE, message, missing)

    def heard(self, event: Joined | Left) -> Outcome | None:
        """Remember it; an Outcome if a peer has failed for good."""
        if event.task not in self._expected:
            return None
        if isinstance(event, Joined) or event.how == DONE:
            self._here.add(event.task)
            self._awaited.discard(event.task)
            return None
        self._here.discard(event.task)
        self._left.append(event)
        if event.how == LOST and event.task in self._stopped():
            return None
        self._ends[event.task] += 1
        times = self._ends[event.task]
        if times <= self._retries:
            return None
        again = f" ({times} times; {self._retries} retries)" if self._retries else ""
        return Outcome(EXIT_FAILED, endings.FAILED, f"{words(event)}{again}", (event.task,))

    def lost(self) -> str:
        """Which peers were lost in this attempt, '' if none was."""
        names = dict.fromkeys(event.task for event in self._left if event.how == LOST)
        return "; ".join(f"{name} was lost" for name in names)

    def failed(self, leaders: Outcome) -> Outcome | None:
        """The first peer whose program failed in this attempt, by itself; None if the leader's
        says the same, as all do about an argument that is wrong, or the peer has only lost it."""
        ours = leaders.message
        for event in self._left:
            same = event.message[:SAME] == ours[:SAME]
            echo = _ECHO.search(event.message) and not _ECHO.search(ours)
            if event.how == FAILED and not same and not echo:
                return Outcome(leaders.exit_code, endings.FAILED, words(event), (event.task,))
        return None


def words(event: Left) -> str:
    """One line about a peer that failed, in its own words, or was lost."""
    return f"{event.task}: {event.message}" if event.message else f"{event.task} was lost"


def by_number(name: str) -> tuple[str, int]:
    """A sort key for task names: `worker-10` comes after `worker-2`."""
    role, _, index = name.rpartition("-")
    return role, int(index)


def mark_of(task: Task, name: str) -> Path:
    """What the program of the task `name` leaves when it has imported TensorFlow, or ended."""
    return task.progress_file.with_name(f"{name}{mailbox.IMPORTED}")


def forget(task: Task) -> None:
    """Before this task says that it is there: its mark is of an earlier run."""
    with contextlib.suppress(OSError):
        mark_of(task, task.name).unlink(missing_ok=True)


def done(task: Task) -> None:
    """This task's program has ended: nobody need wait for its import."""
    with contextlib.suppress(OSError):
        mark_of(task, task.name).touch()


def let_begin(
    task: Task, program: Program, child: Child, peers: Peers, over: threading.Event
) -> None:
    """Tell the leader's program to begin: at once, or when the others have imported TensorFlow.

    Replicas that share variables on a ps wait for nobody: the first one trains alone, and one whose
    container came late could find a short job at its end. A built-in program finds the others by
    itself. Until all tasks are there, their deadline counts.
    """
    if program.builtin or not task.peers or "ps" not in task.cluster:
        child.tell(mailbox.SERVERS_READY)
        return

    def wait() -> None:
        until = time.monotonic() + PATIENCE_S
        while not over.wait(LOOK_S):
            if peers.missing:
                until = time.monotonic() + PATIENCE_S
            elif time.monotonic() > until or all(mark_of(task, n).exists() for n in task.peers):
                child.tell(mailbox.SERVERS_READY)
                return

    threading.Thread(target=wait, name="imports", daemon=True).start()
