"""Reports the functions that a coordinator's workers finished, and those its program waits for.

injected/closures.py counts them in the program's process; the supervisor writes them as events.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from trainer.agent.injected.steps import Speed
from trainer.agent.progress_file import Progress, Reports
from trainer.contract.events import Step

LOOK_S = 1.0
FIRST_LOOKS = 5
"""Until the first function has finished, there are so many looks in LOOK_S: the training's time
counts from there."""
SAY_EVERY_S = 2.0
MANY = 20
"""With more workers than this, events are written less often."""
OVERDUE = 3.0
"""A worker that would have finished so many functions by now, and has finished none, stands."""
LATER_S, LATER = 3600.0, 5
"""After LATER_S seconds, events are written LATER times less often, since runs may last for
days."""


@dataclass(frozen=True)
class Functions:
    """The functions that a program scheduled since its start, and those each worker finished.

    `joined` is the number of scheduled functions when the program last waited for all of them,
    `scored` how many of `finished` were of Keras's `evaluate`, and `failed` how often a worker has
    failed to execute one: a program may end because of it.
    """

    scheduled: int = 0
    joined: int = 0
    finished: Mapping[str, int] = field(default_factory=dict)
    scored: Mapping[str, int] = field(default_factory=dict)
    failed: int = 0

    @classmethod
    def parse(cls, text: str) -> Functions:
        """Parse the counts from the program's mailbox; no functions for "" (no coordinator)."""
        return cls(**json.loads(text)) if text else cls()

    @property
    def done(self) -> int:
        """The number of functions that all workers together have finished."""
        return sum(self.finished.values())

    @property
    def trained(self) -> dict[str, int]:
        """The functions that each worker has finished, without those that only scored."""
        return {task: count - self.scored.get(task, 0) for task, count in self.finished.items()}

    @property
    def forgotten(self) -> int:
        """The number of functions that no worker has finished, when the program has ended; 0 if
        one has failed."""
        return 0 if self.failed else max(0, self.scheduled - self.done)


class Waited:
    """Detects that a program waits for its functions; while it schedules more, it does not wait."""

    def __init__(self) -> None:
        self._scheduled = 0
        self._said: tuple[int, int] | None = None

    def look(self, now: Functions) -> tuple[int, int] | None:
        """Return (done, of) if the program waits, or has just waited, and the numbers are new.

        Both count from the last time when the program waited for all functions. Called about
        once a second.
        """
        goes_on, self._scheduled = now.scheduled != self._scheduled, now.scheduled
        counts = (now.done - now.joined, now.scheduled - now.joined)
        if now.done >= now.scheduled:
            waited, self._said = self._said is not None, None
            return counts if waited else None
        if goes_on or counts == self._said:
            return None
        self._said = counts
        return counts


class Pace:
    """Computes the speed of one worker, whose functions may take longer than the pause between two
    events.

    Args:
        count: the functions that it had finished at `now`.
    """

    def __init__(self, now: float, count: int) -> None:
        self._speed = Speed()
        self._speed.of(now, count)
        self._changed_at, self._count, self._per_s = now, count, 0.0

    def of(self, now: float, count: int) -> float:
        """Return the functions per second; 0 if the next one is long overdue."""
        passed = now - self._changed_at
        if count == self._count:
            overdue = passed * self._per_s >= OVERDUE
            return 0.0 if overdue or not passed else round(min(self._per_s, 1 / passed), 3)
        self._changed_at, self._count = now, count
        self._per_s = self._speed.of(now, count) or 0.0
        return self._per_s


class Work:
    """Measures how fast the workers are; `now` in seconds of a monotonic clock."""

    def __init__(self, now: float) -> None:
        self._began = now
        self._looked_at = now
        self._before = Functions()
        self._speeds: dict[str, Pace] = {}

    @property
    def begun(self) -> bool:
        """Whether a function has finished."""
        return self._before.done > 0

    def look(
        self, now: float, functions: Functions, *, last: bool = False
    ) -> dict[str, dict[str, float]] | None:
        """Return the fields of a `worked` event; None if it is too early, or no function finished.

        Args:
            last: whether the program has ended.

        It is never too early for the first functions and the last ones, but there is no speed then.
        """
        seen_at, before = self._looked_at, self._before
        seconds = now - seen_at
        slower = LATER if now - self._began > LATER_S else 1
        early = seconds < SAY_EVERY_S * slower * max(1.0, len(functions.finished) / MANY)
        first = not self.begun and functions.done > 0
        if early and not (first or last):
            return None
        works_on = 0 < before.done == functions.done < functions.scheduled
        if not works_on:
            self._looked_at, self._before = now, functions
        if functions.done <= before.done:
            if not works_on:
                self._speeds.clear()  # a pause, or another attempt
            return None
        if first or (early and seconds < LOOK_S / 2):
            return {"functions": functions.trained}
        per_s = {
            task: self._speeds.setdefault(task, Pace(seen_at, before.trained.get(task, 0))).of(
                now, count
            )
            for task, count in functions.trained.items()
        }
        return {"functions": functions.trained, "per_s": per_s}


def watch(
    leader: str,
    folder: Path,
    progress: Progress,
    functions: Callable[[], Functions],
    over: threading.Event,
    reports_steps: bool = False,
) -> None:
    """Write `functions` and `worked` events until `over` is set, and what is new then.

    Finished functions that train are also the leader's steps, unless its program reports steps.

    Args:
        folder: the directory of the tasks' progress files.
        progress: the leader's progress file.
        reports_steps: whether the program is known to report steps.
    """
    waited, work, reports = Waited(), Work(time.monotonic()), Reports(folder)
    last, looked_at, written = False, time.monotonic(), 0
    while not last:
        last = over.wait(LOOK_S if work.begun else LOOK_S / FIRST_LOOKS)
        now = functions()
        if not last and time.monotonic() - looked_at >= LOOK_S:
            looked_at = time.monotonic()
            if (waiting := waited.look(now)) is not None:
                progress.write("functions", done=waiting[0], of=waiting[1])
        if (worked := work.look(time.monotonic(), now, last=last)) is None:
            continue
        progress.write("worked", **worked)
        reports_steps |= any(
            name == leader and isinstance(event, Step) and not event.counted
            for name, event in reports.new()
        )
        speeds, step = worked.get("per_s"), sum(worked["functions"].values())
        if reports_steps or step == written or not (speeds or last):
            continue  # at the first functions, a program may not have reported its steps yet
        speed = {"steps_per_s": round(sum(speeds.values()), 3)} if speeds else {}
        progress.write("step", step=step, **speed, counted=True)
        written = step
