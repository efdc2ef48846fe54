"""What a leader hears of its followers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union

from trainer.agent.beacon.messages import Report

DONE, FAILED, LOST = "done", "failed", "lost"


@dataclass(frozen=True)
class Joined:
    """A follower said who it is: for the first time, or after a restart."""

    task: str


@dataclass(frozen=True)
class Left:
    """A follower is gone. `how`: DONE, FAILED (its program did), or LOST (without a word)."""

    task: str
    how: str
    message: str = ""


@dataclass(frozen=True)
class Silent:
    """A task that is there has not been heard of for so many seconds; said again and again.

    `server`: its process is heard of, but its TensorFlow server does not answer.
    """

    task: str
    seconds: float
    server: bool = False


@dataclass(frozen=True)
class HeardAgain:
    """A follower spoke after so many seconds of silence."""

    task: str
    seconds: float


@dataclass(frozen=True)
class Unanswered:
    """Follower `by` has had no answer from `task` for so many seconds; said again and again."""

    task: str
    by: str
    seconds: float


SAID = (Joined, Left, Silent, HeardAgain, Unanswered)
"""What is heard of another task that has not to end the job by itself."""
Heard = Union[Joined, Left, Report, Silent, HeardAgain, Unanswered]
