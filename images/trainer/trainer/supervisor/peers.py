"""The tasks that run the program beside the leader's, as the leader hears of them."""

from __future__ import annotations

import re
from collections import Counter

from trainer import outcome
from trainer.beacon.heard import DONE, FAILED, LOST, Joined, Left
from trainer.errors import EXIT_FAILED
from trainer.outcome import Outcome

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
    more often ends the job: no other task could say why the rest waits.
    """

    def __init__(self, expected: frozenset[str], retries: int) -> None:
        self._expected = expected
        self._retries = retries
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
        return outcome.because(outcome.START_DEADLINE, message, missing)

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
        self._ends[event.task] += 1
        times = self._ends[event.task]
        if times <= self._retries:
            return None
        again = f" ({times} times; {self._retries} retries)" if self._retries else ""
        return Outcome(EXIT_FAILED, outcome.FAILED, f"{words(event)}{again}", (event.task,))

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
                return Outcome(leaders.exit_code, outcome.FAILED, words(event), (event.task,))
        return None


def words(event: Left) -> str:
    """One line about a peer that failed, in its own words, or was lost."""
    return f"{event.task}: {event.message}" if event.message else f"{event.task} was lost"


def by_number(name: str) -> tuple[str, int]:
    """A sort key for task names: `worker-10` comes after `worker-2`."""
    role, _, index = name.rpartition("-")
    return role, int(index)
