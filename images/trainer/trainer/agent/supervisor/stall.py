"""Detects whether a job makes progress, what it waits for, and whether it hangs."""

from __future__ import annotations

import contextlib
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from trainer.agent import outcome, stacks
from trainer.agent.beacon.messages import DONE, PERMANENT, Heard, Joined, Left, Silent
from trainer.agent.beacon.server import BeaconServer
from trainer.agent.beacon.silence import Silence
from trainer.agent.outcome import Outcome
from trainer.agent.progress_file import Progress, Reports
from trainer.agent.servers.probe import Prober
from trainer.agent.task import EVALUATOR, Task, trains
from trainer.agent.usage import Usage
from trainer.contract import endings, events
from trainer.contract.events import Epoch, Event, Phase, Step

LEAST_S = 30.0
TIMES = 20
"""The limit for a program that reports steps is this many times their usual distance, and at least
LEAST_S."""
UNREPORTED_S = 300.0
"""The limit for programs without reports, before the first steps, and in phases without steps."""
ENOUGH = 3
RECOVERY_S = 120.0
"""The limit while a lost task is away, and from a task's connection to the next step: all programs
build their graphs again."""
BUSY_CORES = 0.03
"""The minimum CPUs of a working task. An idle one, with server and heartbeats, uses 0.005."""
BUSY_BYTES_PER_S = 4_000
"""The minimum traffic of a working job, per task on average; heartbeats alone cause 700 to
1,200."""
TRAINING = "training"
_CAME = (events.Start, events.Ready)
_NO_PROGRESS = (
    events.Failure, events.Devices, events.Silent, events.Heard, events.Unanswered, events.Waiting,
    events.Waited, events.Retry, events.End, events.Profiled,
)  # fmt: skip
_JOB = "job"


class Progression:
    """The progress of one attempt; `now` in seconds of a monotonic clock.

    Time counts only while this process itself runs. `limit_s`: the allowed seconds without
    progress, None for the rules above.
    """

    def __init__(self, limit_s: float | None, now: float) -> None:
        self._limit_s = limit_s
        self._silence = Silence(now)
        self._silence.heard(_JOB)
        self._distances: list[float] = []
        self._steps: dict[str, object] = {}
        self._phase = TRAINING
        self._recovers = False
        self.waits_for_task = False
        self.works_alone = False
        """Whether other tasks of an all-reduce have ended: the leader saves or evaluates now."""
        self._used: tuple[float, Mapping[str, Usage]] | None = None

    @property
    def limit_s(self) -> float:
        """The seconds without progress that are allowed now."""
        if self._limit_s is not None:
            return self._limit_s
        if len(self._distances) < ENOUGH:
            return UNREPORTED_S
        least = RECOVERY_S if self._recovers or self.waits_for_task else LEAST_S
        reported = max(least, TIMES * statistics.median(self._distances))
        if self._phase == TRAINING and not self.works_alone:
            return reported
        return max(reported, UNREPORTED_S)

    def look(self, now: float) -> None:
        """Add the time that has passed; called about once a second."""
        self._silence.look(now)

    def reported(self, task: str, event: Event) -> None:
        """Handle a line of a task's progress file; a repeated step does not count as progress."""
        if isinstance(event, _NO_PROGRESS):
            return
        if isinstance(event, _CAME):
            self._recovers = True
            self._silence.heard(_JOB)
            return
        if isinstance(event, Phase):
            self._phase = event.name or ""
        if isinstance(event, Step):
            if self._steps.get(task) == event.step:
                return
            self._steps[task] = event.step
            self._recovers = False
        distance = self._silence.heard(_JOB)
        # A step that the kit counted shows that training runs; it says nothing about other phases.
        reports = isinstance(event, Step | Epoch) and not event.counted
        if reports and self._phase == TRAINING and distance:
            self._distances.append(distance)

    def wrote(self) -> None:
        """Count a file that a program wrote (usually a checkpoint) as progress."""
        self._silence.heard(_JOB)

    def used(self, now: float, by_task: Mapping[str, Usage]) -> None:
        """Record the usage of each task, which counts as progress if no task reports steps, or
        no other task trains any more."""
        before, self._used = self._used, (now, by_task)
        if before is None or (self._distances and not self.works_alone):
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
        """Return the seconds without progress if they exceed the limit; else 0."""
        return self._silence.longer_than(self.limit_s).get(_JOB, 0.0)


AFTER_S = 5.0
UNDER_WAY_S = 2.0
"""Seconds in which a step from before the loss may still be reported: programs report once a
second.
"""


class Waits:
    """Finds waits for lost tasks during the leader's attempts; `now`: monotonic seconds."""

    def __init__(self, progress: Progress, leader: str) -> None:
        self._progress = progress
        self._leader = leader
        self._finished: set[str] = set()
        self._reports_steps = False
        self._away: set[str] = set()
        self._asked: frozenset[str] = frozenset()
        self.begin_attempt()

    def begin_attempt(self) -> None:
        """Reset: all tasks that are there start again."""
        self._lost: dict[str, float] = {}
        self._not_missed: set[str] = set()
        self._told: set[str] = set()
        self._on_request: set[str] = set()
        self._steps: dict[str, object] = {}
        self._phase = TRAINING

    def asked(self, tasks: frozenset[str]) -> None:
        """Record that the leader asks these tasks to start again: their next end is no loss."""
        self._asked = tasks

    def heard(self, event: Heard, now: float) -> None:
        """Record that a task has crashed or is silent; training does not wait for an evaluator."""
        if isinstance(event, Left) and event.how == DONE:
            self._finished.add(event.task)
        elif isinstance(event, Joined):
            self._finished.discard(event.task)
        left = isinstance(event, Left) and event.how not in (DONE, PERMANENT)
        if left:
            self._away.add(event.task)
            if event.task in self._asked:
                self._on_request.add(event.task)
            else:
                self._on_request.discard(event.task)
            self._asked -= {event.task}
        elif isinstance(event, Joined):
            self._away.discard(event.task)
            self._not_missed.discard(event.task)
        lost = left or (isinstance(event, Silent) and event.task not in self._not_missed)
        if lost and not event.task.startswith(EVALUATOR):
            self._lost.setdefault(event.task, now)

    @property
    def others_have_ended(self) -> bool:
        """Whether the program of another task that trains has ended well."""
        return any(trains(task) for task in self._finished)

    @property
    def for_task(self) -> bool:
        """Whether no step was reported since the loss of a task that has not connected again."""
        return not self._away.isdisjoint(tuple(self._lost))

    def reported(self, task: str, event: Event, now: float) -> None:
        """Handle a line of a task's progress file; a repeated step does not count."""
        if isinstance(event, Phase):
            self._phase = event.name or ""
        if not isinstance(event, Step) or self._steps.get(task) == event.step:
            return
        self._steps[task] = event.step
        self._reports_steps = True
        over = [name for name, since in self._lost.items() if now > since + UNDER_WAY_S]
        for name in over:
            since = self._lost.pop(name)
            if name in self._away:
                self._not_missed.add(name)  # its server is reported as silent only later
            if name in self._told:
                self._told.discard(name)
                seconds = round(now - since, 1)
                self._progress.write("waited", of=name, seconds=seconds)
                self._say(f"training continues; it waited {seconds:.0f} s for {name}")

    def look(self, now: float) -> None:
        """Write an event if training has begun to wait for a task; called about once a second.

        A program that reports no steps may train on without the task.
        """
        if self._phase != TRAINING or not self._reports_steps:
            return
        missed = self._away - self._not_missed
        away = any(not name.startswith(EVALUATOR) for name in missed)
        for name, since in list(self._lost.items()):
            if away and name not in self._away:
                continue  # it is back, and waits itself
            if name in self._on_request:
                continue
            if name not in self._told and now >= since + AFTER_S:
                self._told.add(name)
                self._progress.write("waiting", of=name, seconds=round(now - since, 1))
                self._say(f"training waits for {name}, which was lost {now - since:.0f} s ago")

    def _say(self, text: str) -> None:
        print(f"{self._leader}: {text}", file=sys.stderr, flush=True)


LOOK_S = 1.0
ANSWER_S = 2.0
FILES_EVERY = 5
"""The number of looks between two checks of the output's files, of which there may be many."""
MOST_FILES = 5000
NOT_LOOKED_AT = ("progress", "stacks")


@dataclass(frozen=True)
class Stalled:
    """The number of seconds for which an attempt has made no progress."""

    attempt: int
    seconds: float


def watch(
    task: Task,
    attempt: int,
    usage: Callable[[], Mapping[str, Usage]],
    waits: Waits,
    then: Callable[[Stalled], None],
    over: threading.Event,
) -> None:
    """Call `then` once if the attempt makes no progress; return after that, or if `over` is set.

    Passes the reported events to `waits`.
    """
    progression = Progression(task.stall_s, time.monotonic())
    reports = Reports(task.progress_file.parent)
    looks, files = 0, written(task.output)
    while not over.wait(LOOK_S):
        looks += 1
        now = time.monotonic()
        progression.look(now)
        for name, event in reports.new():
            progression.reported(name, event)
            waits.reported(name, event, now)
        waits.look(now)
        progression.waits_for_task = waits.for_task
        progression.works_alone = waits.others_have_ended and not task.has_ps
        if looks % FILES_EVERY == 0:
            progression.used(now, usage())
            before, files = files, written(task.output)
            if files != before:
                progression.wrote()
        if (seconds := progression.standing_s()) and task.stall_s != 0:
            then(Stalled(attempt, seconds))
            return


def written(folder: Path) -> frozenset[tuple[str, int, int]]:
    """Return (path, size, time of change) of the first MOST_FILES files, to detect changes.

    Times alone are not enough, since the clock can be set back.
    """
    facts: set[tuple[str, int, int]] = set()
    for root, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in NOT_LOOKED_AT]
        for name in files:
            path = Path(root) / name
            with contextlib.suppress(OSError):
                status = path.stat()
                facts.add((str(path), status.st_size, status.st_mtime_ns))
        if len(facts) > MOST_FILES:
            break
    return frozenset(facts)


SHOWN = f"where each task stands is in {stacks.KEPT}/ of the output"


def ended(reason: str, tasks: tuple[str, ...], *, several: bool = False) -> Outcome:
    """Return the outcome of a job that makes no progress.

    Args:
        tasks: those that are to blame; if empty, the leader is blamed.
        several: whether other tasks run the program, too, and one of them may be the cause.
    """
    unsure = "; any task may be the one that hangs" if several and not tasks else ""
    return outcome.because(endings.STALL, f"{reason}{unsure}; {SHOWN}", tasks)


def keep_stacks(task: Task, why: str, followers: BeaconServer | None) -> None:
    """Save the stacks of all tasks, and whether each server answers, before ending any task."""
    if followers:
        followers.ask_for_stacks()
    answers = ""
    if task.servers:
        with Prober(task.servers) as prober:
            answers = "".join(f"{answer}\n" for answer in prober.ask(ANSWER_S))
    stacks.keep(task, why, answers)
