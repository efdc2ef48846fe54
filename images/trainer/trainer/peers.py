"""The tasks that run the program beside the leader's, as the leader hears of them."""

from __future__ import annotations

from collections import Counter

from trainer import outcome
from trainer.announcer import Joined, Left
from trainer.outcome import Outcome


class Peers:
    """Who came, who was lost, and who failed, of the tasks that are expected.

    A lost or failed peer comes back by Docker's restart policy, `retries` times. One that fails
    more often ends the job: nobody else would say why the others wait.
    """

    def __init__(self, expected: frozenset[str], retries: int) -> None:
        self._expected = expected
        self._retries = retries
        self._seen: set[str] = set()
        self._ends: Counter[str] = Counter()
        self._left: list[Left] = []

    def begin_attempt(self) -> None:
        """Forget who left: it did so in an earlier attempt of the leader's program."""
        self._left = []

    @property
    def any(self) -> bool:
        return bool(self._expected)

    @property
    def missing(self) -> tuple[str, ...]:
        """Those that never said anything, in order."""
        return tuple(sorted(self._expected - self._seen, key=by_number))

    def missing_outcome(self, deadline_s: float) -> Outcome:
        """The end of a job for which not everybody came."""
        missing = self.missing
        message = (
            f"{len(missing)} of {len(self._expected)} tasks that run the program did not appear"
            f" within {deadline_s:g} s: {', '.join(missing)}"
        )
        return outcome.deadline(outcome.START_DEADLINE, message, missing)

    def heard(self, event: Joined | Left) -> Outcome | None:
        """Remember it; an Outcome where a peer has failed for good."""
        if event.task not in self._expected:
            return None
        self._seen.add(event.task)
        if isinstance(event, Joined) or event.how == "done":
            return None
        self._left.append(event)
        self._ends[event.task] += 1
        times = self._ends[event.task]
        if times <= self._retries:
            return None
        again = f" ({times} times; {self._retries} retries)" if self._retries else ""
        return Outcome(1, outcome.FAILED, f"{words(event)}{again}", (event.task,))

    def lost(self) -> str:
        """Which peers were lost in this attempt, '' where none was."""
        names = dict.fromkeys(event.task for event in self._left if event.how == "lost")
        return "; ".join(f"{name} was lost" for name in names)

    def failed(self) -> Outcome | None:
        """The first peer whose program failed in this attempt, by itself."""
        for event in self._left:
            if event.how == "failed":
                return Outcome(1, outcome.FAILED, words(event), (event.task,))
        return None


def words(event: Left) -> str:
    return f"{event.task}: {event.message}" if event.message else f"{event.task} was lost"


def by_number(name: str) -> tuple[str, int]:
    role, _, index = name.rpartition("-")
    return role, int(index)
