"""Tells how many functions of a coordinator are done while its program waits for them.

A coordinator schedules the functions of an epoch without waiting, and reports no step until the
workers have finished them all.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from trainer.agent.events import Progress

LOOK_S = 1.0


@dataclass(frozen=True)
class Functions:
    """Of one start of a program: how many it has scheduled, and each worker finished, by name.

    `joined` were scheduled before it waited for all of them, the last time.
    """

    scheduled: int = 0
    joined: int = 0
    finished: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Functions:
        """From what the program left in its mailbox; none of "" (no coordinator)."""
        return cls(**json.loads(text)) if text else cls()

    @property
    def done(self) -> int:
        """Finished by all workers together."""
        return sum(self.finished.values())


class Waited:
    """Says what a program waits for: nothing as long as it goes on scheduling."""

    def __init__(self) -> None:
        self._scheduled = 0
        self._said: tuple[int, int] | None = None

    def look(self, now: Functions) -> tuple[int, int] | None:
        """(done, of) if that is new and the program waits, or has waited; about once a second.

        Counted from where the program has last waited for all of them.
        """
        goes_on, self._scheduled = now.scheduled != self._scheduled, now.scheduled
        found = (now.done - now.joined, now.scheduled - now.joined)
        if now.done >= now.scheduled:
            waited, self._said = self._said is not None, None
            return found if waited else None
        if goes_on or found == self._said:
            return None
        self._said = found
        return found


def watch(progress: Progress, functions: Callable[[], Functions], over: threading.Event) -> None:
    """Write down what the program waits for, until `over`."""
    waited = Waited()
    while not over.wait(LOOK_S):
        if (found := waited.look(functions())) is not None:
            progress.write("functions", done=found[0], of=found[1])
