"""Whether a job gets on: from what its programs report, write and use."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

from trainer.agent.beacon.silence import Silence
from trainer.agent.usage import Usage

LEAST_S = 30.0
TIMES = 20
"""A program that reports steps has this many times their usual distance, and LEAST_S at least."""
UNREPORTED_S = 300.0
"""For programs that report nothing, before the first steps, and in phases without steps."""
ENOUGH = 3
RECOVERY_S = 120.0
"""From when a task came until the next step: programs build their graphs anew, all at once."""
BUSY_CORES = 0.03
"""Of one task. An idle one, with its server and its signs of life, uses 0.005."""
BUSY_BYTES_PER_S = 4_000
"""For each task, on the average: their signs of life are 700 to 1,200."""
TRAINING = "training"
_CAME = ("start", "ready")
_NO_PROGRESS = (
    "failure", "devices", "silent", "heard", "unanswered", "waiting", "waited", "retry", "end",
    "asked", "profiled",
)  # fmt: skip
_JOB = "job"


class Progression:
    """One attempt at the job's programs; `now` in seconds of a monotonic clock.

    Time counts only while we run ourselves. `limit_s`: seconds without progress, None for the rules
    above.
    """

    def __init__(self, limit_s: float | None, now: float) -> None:
        self._limit_s = limit_s
        self._silence = Silence(now)
        self._silence.heard(_JOB)
        self._distances: list[float] = []
        self._steps: dict[str, object] = {}
        self._phase = TRAINING
        self._recovers = False
        self._used: tuple[float, Mapping[str, Usage]] | None = None

    @property
    def limit_s(self) -> float:
        """Seconds without progress that are too many now."""
        if self._limit_s is not None:
            return self._limit_s
        if len(self._distances) < ENOUGH:
            return UNREPORTED_S
        least = RECOVERY_S if self._recovers else LEAST_S
        reported = max(least, TIMES * statistics.median(self._distances))
        return reported if self._phase == TRAINING else max(reported, UNREPORTED_S)

    def look(self, now: float) -> None:
        """Let time pass; about once a second."""
        self._silence.look(now)

    def reported(self, task: str, event: Mapping[str, Any]) -> None:
        """One line of a task's progress file. A step that was reported before is no progress."""
        kind = event.get("event")
        if kind in _NO_PROGRESS:
            return
        if kind in _CAME:
            self._recovers = True
            self._silence.heard(_JOB)
            return
        if kind == "phase":
            self._phase = str(event.get("name"))
        if kind == "step":
            if self._steps.get(task) == event.get("step"):
                return
            self._steps[task] = event.get("step")
            self._recovers = False
        distance = self._silence.heard(_JOB)
        if kind in ("step", "epoch") and self._phase == TRAINING and distance:
            self._distances.append(distance)

    def wrote(self) -> None:
        """A program wrote a file: a checkpoint, most likely."""
        self._silence.heard(_JOB)

    def used(self, now: float, by_task: Mapping[str, Usage]) -> None:
        """What each task has used so far; it counts if nobody reports anything."""
        before, self._used = self._used, (now, by_task)
        if before is None or self._distances:
            return
        passed = now - before[0]
        more = [
            (used.cpu_s - was.cpu_s, used.bytes - was.bytes)
            for task, used in by_task.items()
            if (was := before[1].get(task))
        ]
        computes = any(cpu_s > BUSY_CORES * passed for cpu_s, _ in more)
        sends = sum(count for _, count in more) > BUSY_BYTES_PER_S * passed * len(more)
        if computes or sends:
            self._silence.heard(_JOB)

    def standing_s(self) -> float:
        """For how many seconds there has been no progress, if they are too many; else 0."""
        return self._silence.longer_than(self.limit_s).get(_JOB, 0.0)
