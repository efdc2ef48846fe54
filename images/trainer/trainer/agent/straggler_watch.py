"""Looks for stragglers once a second, and reports when a task becomes one and stops being one."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict

from trainer.agent.progress_file import Progress, Reports
from trainer.agent.straggler_rule import BANDWIDTH, CPU, MEMORY, Straggled, Stragglers, Straggling
from trainer.agent.task import Task
from trainer.agent.usage import Usage
from trainer.contract.events import End, Event, Phase, Ready, Silent, Start, Step


def begin_sentence(found: Straggling, group: str, *, of_two: bool = False) -> str:
    """Return a line that reports a straggler.

    Args:
        group: the tasks that do the same work: `workers`.
        of_two: whether there is only one other.
    """
    if found.steps_per_s is None:
        slowed = f", which makes it {found.slowed:.1f} times slower" if found.slowed else ""
        return f"{found.task} is a straggler: {cause_sentence(found)}{slowed}"
    usual = f"the median of the other {group} is"
    usual = f"the other {group.removesuffix('s')} makes" if of_two else usual
    return (
        f"{found.task} is a straggler: {found.steps_per_s:.1f} steps/s, {usual}"
        f" {found.others_steps_per_s:.1f}; {found.share:.0%} of the steps; {cause_sentence(found)}"
    )


def end_sentence(over: Straggled) -> str:
    """Return a line that reports that a task is no longer a straggler."""
    share = f", with {over.share:.0%} of the steps" if over.share is not None else ""
    return f"{over.task} was a straggler for {over.seconds:.0f} s{share}"


def cause_sentence(found: Straggling) -> str:
    """Return why the task is slow, if its usage shows a cause."""
    if found.cause == CPU:
        return f"its CPU limit of {found.limit:g} is reached"
    if found.cause == BANDWIDTH:
        return f"its bandwidth limit of {found.limit / 1e6:g} Mbit/s is reached"
    if found.cause == MEMORY:
        return "it waits for memory"
    return "none of its limits is reached"


LOOK_S = 1.0
TRAINING = "training"
_ANEW = (Start, Ready, End, Silent)
"""Events after which a task's measurement starts again; the last one names another task."""


class StragglerWatch:
    """Watches one attempt at the leader's program, until `end`.

    Args:
        used: each task's usage, by name.
        finished: the number of closures that each worker has finished, by name; {} without a
        coordinator.
    """

    def __init__(
        self,
        task: Task,
        progress: Progress,
        used: Callable[[], Mapping[str, Usage]],
        finished: Callable[[], Mapping[str, int]],
    ) -> None:
        self._task = task
        self._progress = progress
        self._used = used
        self._finished = finished
        self._groups = groups(task)
        self._rule = Stragglers(list(self._groups.values()), in_turns(task))
        self._steps: dict[str, object] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="stragglers", daemon=True)
        if self._groups:
            self._thread.start()

    def end(self) -> None:
        """End the watch: nothing is reported after this."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _watch(self) -> None:
        reports = Reports(self._task.progress_file.parent)
        while not self._over.wait(LOOK_S):
            now = time.monotonic()
            for name, event in reports.new():
                self._reported(now, name, event)
            for name, count in self._finished().items():
                self._rule.made(now, name, count)
            self._rule.used(now, self._used())
            for change in self._rule.look(now):
                self._tell(change)
        for over in self._rule.end(time.monotonic()):
            self._tell(over)

    def _reported(self, now: float, name: str, event: Event) -> None:
        """Handle one line of a task's progress file."""
        if isinstance(event, Step):
            if event.own_steps is not None and event.own_steps >= 0:
                self._rule.made(now, name, int(event.own_steps))
            if self._steps.get(name) != event.step:
                self._steps[name] = event.step
                self._rule.moved(now)
        elif isinstance(event, Phase) and event.name != TRAINING:
            self._rule.pause()
        elif isinstance(event, _ANEW):
            of = event.of if isinstance(event, Silent) else None
            if over := self._rule.forget(now, of or name):
                self._tell(over)

    def _tell(self, found: Straggling | Straggled) -> None:
        """Write the event, and print it."""
        values = {key: rounded(value) for key, value in asdict(found).items() if key != "task"}
        if isinstance(found, Straggled):
            text = end_sentence(found)
            self._progress.write("straggled", of=found.task, message=text, **values)
        else:
            alike = ((group, names) for group, names in self._groups.items() if found.task in names)
            group, names = next(alike)
            text = begin_sentence(found, group, of_two=len(names) == 2)
            self._progress.write("straggling", of=found.task, message=text, **values)
        print(f"{self._task.name}: {text}", file=sys.stderr, flush=True)


def groups(task: Task) -> dict[str, tuple[str, ...]]:
    """Return the tasks that do the same work, by group name; groups with one task are omitted."""
    by_name = {"tasks": (task.name, *sorted(task.peers))}
    for role, called in (("worker", "workers"), ("ps", "parameter servers")):
        by_name[called] = tuple(name for name in task.servers if name.startswith(f"{role}-"))
    if all(name.startswith("worker-") for name in by_name["tasks"]) and not by_name["workers"]:
        by_name["workers"] = by_name.pop("tasks")
    return {called: names for called, names in by_name.items() if len(names) > 1}


def in_turns(task: Task) -> frozenset[str]:
    """Return the tasks that do not send while they receive: all but the ps of a job with ps."""
    ps = frozenset(name for name in task.servers if name.startswith("ps-"))
    return frozenset((task.name, *task.peers, *task.servers)) - ps if ps else ps


def rounded(value: object) -> object:
    return round(value, 4) if isinstance(value, float) else value
