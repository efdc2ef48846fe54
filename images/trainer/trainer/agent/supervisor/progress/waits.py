"""Tells when the training stands because a task was lost, and for how long it stood.

Asynchronous training goes on without a worker; so does synchronous training with enough backup
workers. Where it does not, nothing else would say what everybody waits for.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from trainer.agent.beacon.heard import DONE, Heard, Left, Silent
from trainer.agent.events import Progress
from trainer.agent.task import EVALUATOR

AFTER_S = 5.0
UNDER_WAY_S = 2.0
"""Programs report about once a second: a step that was made before the loss may be told later."""
TRAINING = "training"


class Waits:
    """Of the attempts at the leader's program; `now` in seconds of a monotonic clock."""

    def __init__(self, progress: Progress, leader: str) -> None:
        self._progress = progress
        self._leader = leader
        self.begin_attempt()

    def begin_attempt(self) -> None:
        """Forget everything: all tasks begin anew."""
        self._lost: dict[str, float] = {}
        self._told: set[str] = set()
        self._steps: dict[str, object] = {}
        self._phase = TRAINING

    def heard(self, event: Heard, now: float) -> None:
        """A task may have crashed, or be silent; nobody waits for an evaluator."""
        lost = isinstance(event, Silent) or (isinstance(event, Left) and event.how != DONE)
        if lost and not event.task.startswith(EVALUATOR):
            self._lost.setdefault(event.task, now)

    def reported(self, task: str, event: Mapping[str, Any], now: float) -> None:
        """One line of a task's progress file; a step that was reported before is none."""
        if event.get("event") == "phase":
            self._phase = str(event.get("name"))
        if event.get("event") != "step" or self._steps.get(task) == event.get("step"):
            return
        self._steps[task] = event.get("step")
        over = [name for name, since in self._lost.items() if now > since + UNDER_WAY_S]
        for name in over:
            since = self._lost.pop(name)
            if name in self._told:
                self._told.discard(name)
                seconds = round(now - since, 1)
                self._progress.write("waited", of=name, seconds=seconds)
                self._say(f"training goes on; it waited {seconds:.0f} s for {name}")

    def look(self, now: float) -> None:
        """Tell of what training has begun to wait for; about once a second."""
        if self._phase != TRAINING:
            return
        for name, since in list(self._lost.items()):
            if name not in self._told and now >= since + AFTER_S:
                self._told.add(name)
                self._progress.write("waiting", of=name, seconds=round(now - since, 1))
                self._say(f"training waits for {name}, which was lost {now - since:.0f} s ago")

    def _say(self, text: str) -> None:
        print(f"{self._leader}: {text}", file=sys.stderr, flush=True)
