"""The manifest's policies: who decides that the job succeeded, and which exit codes are final."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

Ranges = tuple[tuple[int, int], ...]
MOST_NAMED = 8
"""The maximum number of tasks that a sentence names; it gives the number of the others."""


@dataclass(frozen=True)
class RestartCodes:
    """Exit codes of programs, as ranges with both ends: those after which a program is never
    started again, and those after which it is.

    Other codes are for the usual rules: a follower is started again, a leader only if it has lost
    another task.
    """

    permanent: Ranges = ()
    retryable: Ranges = ()

    def is_permanent(self, code: int) -> bool:
        return _within(code, self.permanent)

    def is_retryable(self, code: int) -> bool:
        return _within(code, self.retryable)


def _within(code: int, ranges: Ranges) -> bool:
    return any(first <= code <= last for first, last in ranges)


def read_restart(text: str) -> RestartCodes:
    """The codes in `{"permanent": [[3, 3]], "retryable": []}`; raises ValueError, TypeError or
    KeyError."""
    if not text:
        return RestartCodes()
    table = json.loads(text)
    permanent, retryable = (
        tuple((int(first), int(last)) for first, last in table[key])
        for key in ("permanent", "retryable")
    )
    return RestartCodes(permanent, retryable)


@dataclass(frozen=True)
class SuccessRule:
    """How many tasks of each role must end well; `text` is the manifest's line."""

    text: str
    needed: Mapping[str, int]


def read_success(text: str) -> SuccessRule | None:
    """The rule in `{"text": …, "needed": {"worker": 2}}`, None for no text: the leader decides.

    Raises:
        ValueError, TypeError, KeyError: it is not such an object.
    """
    if not text:
        return None
    table = json.loads(text)
    needed = {str(role): int(count) for role, count in dict(table["needed"]).items()}
    return SuccessRule(str(table["text"]), needed)


def permanent_end(task: str, code: int) -> str:
    """Return a sentence about a program that will not be started again."""
    return f"{task} {_permanently(code)}"


def _permanently(code: int) -> str:
    return f"ended with {code}, which is permanent"


def how_it_ended(code: int, restart: RestartCodes) -> str:
    """Return how a program ended, as the end of a sentence."""
    return _permanently(code) if restart.is_permanent(code) else f"ended with {code}"


@dataclass
class Success:
    """Counts the tasks that have ended well or failed for good, and decides by the rule.

    Args:
        tasks: the tasks that run the program and train, the leader among them.
    """

    rule: SuccessRule
    tasks: Sequence[str]
    _well: set[str] = field(default_factory=set)
    _failed: dict[str, str] = field(default_factory=dict)

    def counts(self, task: str) -> bool:
        """Whether the task trains: the job goes on without it, if the rule allows that."""
        return task in self.tasks

    def ended_well(self, task: str) -> None:
        """Count a task whose program ended with 0."""
        if task in self.tasks:
            self._well.add(task)
            self._failed.pop(task, None)

    def failed(self, task: str, how: str) -> bool:
        """Count a task that has failed for good; return whether that is news.

        Args:
            how: the end of a sentence about it.
        """
        if task not in self.tasks or task in self._well:
            return False
        is_new = task not in self._failed
        self._failed[task] = how
        return is_new

    def is_back(self, task: str) -> None:
        """Do not count a task as failed: it was started again, or sends heartbeats again."""
        self._failed.pop(task, None)

    @property
    def running(self) -> tuple[str, ...]:
        """The tasks of the rule's roles that have neither ended well nor failed for good."""
        over = {*self._well, *self._failed}
        return tuple(t for role in self.rule.needed for t in self._of(role) if t not in over)

    @property
    def is_reached(self) -> bool:
        """Whether enough tasks have ended well."""
        return all(
            sum(task in self._well for task in self._of(role)) >= count
            for role, count in self.rule.needed.items()
        )

    @property
    def is_out_of_reach(self) -> bool:
        """Whether too many tasks have failed for good."""
        return any(
            sum(task not in self._failed for task in self._of(role)) < count
            for role, count in self.rule.needed.items()
        )

    @property
    def missed(self) -> Mapping[str, str]:
        """Those that failed for good of the roles that decide, in this order, and how."""
        return {t: how for t, how in self._failed.items() if _role(t) in self.rule.needed}

    def sentence(self) -> str:
        """Who decided: the tasks that ended well, or those that failed for good."""
        if not self.is_reached:
            return f"{_listed(self.missed)}: success = {self.rule.text} cannot be reached any more"
        counted = " and ".join(
            f"{sum(task in self._well for task in tasks)} of {len(tasks)} {role}"
            f"{'s' if len(tasks) > 1 and not role.endswith('s') else ''}"
            for role, tasks in ((role, self._of(role)) for role in self.rule.needed)
        )
        failed = f"; {_listed(self._failed)}" if self._failed else ""
        return f"{counted} ended well (success = {self.rule.text}){failed}"

    def waiting_sentence(self) -> str:
        """Which tasks the job waits for."""
        running = self.running
        more = f" and {len(running) - MOST_NAMED} more" if len(running) > MOST_NAMED else ""
        return f"success = {self.rule.text} waits for {', '.join(running[:MOST_NAMED])}{more}"

    def _of(self, role: str) -> list[str]:
        return [task for task in self.tasks if _role(task) == role]


def _role(task: str) -> str:
    return task.rpartition("-")[0]


def _listed(failed: Mapping[str, str]) -> str:
    """The tasks, each with how it failed."""
    named: Iterable[tuple[str, str]] = list(failed.items())[:MOST_NAMED]
    more = len(failed) - MOST_NAMED
    words = ", ".join(f"{task} {how}" for task, how in named)
    return f"{words} and {more} more failed" if more > 0 else words
