"""Decides which task is a straggler, and when. Pure: the caller passes the time.

It compares the steps of tasks that do the same work. In synchronous training all make the same
steps; then a task is a straggler if it alone has reached its CPU or bandwidth limit.
"""

from __future__ import annotations

import statistics
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from trainer.agent.usage import Usage
from trainer.contract.times import STRAGGLER_FACTOR, STRAGGLER_S

CPU, BANDWIDTH, MEMORY, UNKNOWN = "cpu-limit", "bandwidth-limit", "memory", "unknown"
"""The causes of a straggler."""
HELD_UP = 1.5
"""The factor of slowness from which a CPU limit counts as the cause."""
CPU_REACHED = 0.8
"""The minimum share of its CPU limit that a task uses if the limit is the cause."""
BANDWIDTH_REACHED = 0.9
MEMORY_WAITS = 0.1
FAULTS_PER_S = 20.0
"""Major page faults per second that count as a lack of memory if the kernel does not count waits
for memory."""
WORKS = 0.03
"""The minimum CPUs that a working task uses."""


@dataclass(frozen=True)
class Strain:
    """How a task was limited within some seconds.

    `slowed`: the factor by which its CPU limit slows it.
    """

    seconds: float
    cpus: float
    of_cpu_limit: float
    slowed: float
    of_bandwidth: float
    memory: float
    """Share of the time in which some thread waited for memory."""

    @property
    def cause(self) -> str:
        """The possible cause of its slowness."""
        if self.slowed >= HELD_UP:
            return CPU
        if self.of_bandwidth >= BANDWIDTH_REACHED:
            return BANDWIDTH
        return MEMORY if self.memory >= MEMORY_WAITS else UNKNOWN


def strain(before: Usage, after: Usage, seconds: float, *, in_turns: bool = False) -> Strain:
    """The difference between two samples of a task's usage.

    `in_turns`: the task does not send while it receives, so that its link is busy for the sum.
    """
    cpu_s = after.cpu_s - before.cpu_s
    throttled_s = max(0.0, after.throttled_s - before.throttled_s)
    moved = (after.received - before.received, after.sent - before.sent)
    transferred = sum(moved) if in_turns else max(moved)
    if after.memory_s is None or before.memory_s is None:
        memory = (after.faults - before.faults) / seconds / FAULTS_PER_S * MEMORY_WAITS
    else:
        memory = (after.memory_s - before.memory_s) / seconds
    return Strain(
        seconds=seconds,
        cpus=cpu_s / seconds,
        of_cpu_limit=cpu_s / seconds / after.cpus if after.cpus else 0.0,
        # Threads that want p CPUs and get the limit L wait together for p - L of the time.
        slowed=1 + throttled_s / cpu_s if cpu_s > WORKS * seconds and after.cpus else 1.0,
        of_bandwidth=transferred * 8 / seconds / after.bandwidth if after.bandwidth else 0.0,
        memory=memory,
    )


def reached_alone(
    cause: str, own: Sequence[Strain], others: Sequence[Sequence[Strain]]
) -> list[bool]:
    """For each part of a window, whether the task has reached this limit (CPU or BANDWIDTH) and the
    others have not."""
    return [_alone(cause, mine, theirs) for mine, *theirs in zip(own, *others)]


def are_idle(others: Sequence[Sequence[Strain]]) -> bool:
    """Whether all others are idle in some part of a window, so that they wait for more than a
    step."""
    return any(statistics.median(strain.cpus for strain in part) < WORKS for part in zip(*others))


def _alone(cause: str, own: Strain, others: Sequence[Strain]) -> bool:
    if cause == BANDWIDTH:
        if own.of_bandwidth < BANDWIDTH_REACHED:
            return False  # at once: the medians of many tasks, for each of them, take milliseconds
        return statistics.median(other.of_bandwidth for other in others) < BANDWIDTH_REACHED
    if own.of_cpu_limit < CPU_REACHED:
        return False
    return own.slowed > STRAGGLER_FACTOR * statistics.median(other.slowed for other in others)


Value = TypeVar("Value")
PARTS = 4
"""A rule about a window must hold in each of its parts: a single long pause is no evidence."""


class Series(Generic[Value]):
    """Values, each valid from its time (seconds) to that of the next; old ones are dropped."""

    def __init__(self, longest_s: float) -> None:
        self._longest_s = longest_s
        self._times: list[float] = []
        self._values: list[Value] = []

    def add(self, now: float, value: Value) -> None:
        """Add the value at `now`, which never decreases."""
        self._times.append(now)
        self._values.append(value)
        too_old = max(0, bisect_right(self._times, now - self._longest_s) - 1)
        del self._times[:too_old], self._values[:too_old]

    def at(self, moments: Sequence[float]) -> list[Value] | None:
        """The values at these times; None if the first one is before the series."""
        if not self._times or moments[0] < self._times[0]:
            return None
        return [self._values[bisect_right(self._times, moment) - 1] for moment in moments]


def parts(now: float, seconds: float) -> list[float]:
    """The borders of the PARTS of a window that ends `now`."""
    return [now - seconds + seconds * part / PARTS for part in range(PARTS + 1)]


def increases(values: Sequence[int]) -> list[int]:
    """The differences between successive values."""
    return [later - before for before, later in zip(values, values[1:])]


WINDOWS_S = tuple(STRAGGLER_S * factor for factor in (1, 2, 4, 8))
"""Lengths of windows: the first one in which a task makes a step in each part is used, since steps
may take long."""
LONGEST_S = WINDOWS_S[-1] + 10
KEEPS_UP = 1.5
"""A straggler that is at most this many times slower is not a straggler any more."""
ALIKE = 1.25
"""Tasks whose steps differ by less than this probably wait for each other."""


@dataclass(frozen=True)
class Pace:
    """The steps of one task and of the others in a window, by part of the window."""

    seconds: float
    own: tuple[int, ...]
    others: Mapping[str, tuple[int, ...]]

    @property
    def steps_per_s(self) -> float:
        return sum(self.own) / self.seconds

    @property
    def others_per_s(self) -> float:
        """The median of the other tasks, the lower one of two: if most tasks are slow, none is a
        straggler.
        """
        return statistics.median_low(map(sum, self.others.values())) / self.seconds

    @property
    def share(self) -> float:
        """The task's share of all tasks' steps."""
        everybody = sum(self.own) + sum(map(sum, self.others.values()))
        return sum(self.own) / everybody if everybody else 0.0

    @property
    def is_slow(self) -> bool:
        """Whether it is more than STRAGGLER_FACTOR times slower than the others' median, in each
        part."""
        medians = map(statistics.median_low, zip(*self.others.values()))
        return all(
            own_steps * STRAGGLER_FACTOR < others for own_steps, others in zip(self.own, medians)
        )

    @property
    def keeps_up(self) -> bool:
        return self.steps_per_s * KEEPS_UP >= self.others_per_s

    @property
    def is_alike(self) -> bool:
        """Whether all tasks make the same steps, as in synchronous training."""
        sums = [sum(self.own), *map(sum, self.others.values())]
        return max(sums) <= ALIKE * min(sums)


Window = Mapping[str, tuple[int, ...]]
"""Steps of each task by part of a window, for tasks that were connected all the time."""


def window(steps: Mapping[str, Series[int]], now: float, seconds: float) -> Window:
    """The window of this many seconds that ends `now`."""
    borders = parts(now, seconds)
    values = {task: series.at(borders) for task, series in steps.items()}
    return {task: tuple(increases(at)) for task, at in values.items() if at is not None}


def pace(task: str, group: Sequence[str], windows: Sequence[Window]) -> Pace | None:
    """The pace of the task and of the others in `group`; None if it is unknown (yet).

    A task that makes no step in a part of every window does something else: it saves, waits, or has
    ended. Other modules find silent and hanging tasks. `windows`: those to try, of WINDOWS_S.
    """
    for seconds, steps in zip(WINDOWS_S, windows):
        own_steps = steps.get(task)
        if own_steps and all(own_steps):
            others = {name: steps[name] for name in group if name != task and name in steps}
            return Pace(seconds, own_steps, others) if others else None
    return None


LONGEST_PAUSE_S = 5.0
"""Maximum time between two samples; after a longer one, earlier samples are dropped."""


@dataclass(frozen=True)
class Straggling:
    """A task is a straggler, and has been for some seconds. Unknown values are None."""

    task: str
    seconds: float
    cause: str
    limit: float | None
    """The limit of the cause: CPUs, or bits per second."""
    steps_per_s: float | None = None
    others_steps_per_s: float | None = None
    """The median of the others."""
    share: float | None = None
    """The share of all tasks' steps, 0 to 1."""
    slowed: float | None = None
    """The factor by which its CPU limit slows it, if steps do not show that."""


@dataclass(frozen=True)
class Straggled:
    """A task is no longer a straggler, after this many seconds with this share of all steps."""

    task: str
    seconds: float
    share: float | None


class Stragglers:
    """The stragglers of one attempt at a job; `now` is in seconds of a monotonic clock.

    `groups`: the names of the tasks that do the same work. `in_turns`: the tasks that do not send
    while they receive, as under ps: a step reads the variables, then sends the gradients.
    """

    def __init__(self, groups: Sequence[Sequence[str]], in_turns: Collection[str] = ()) -> None:
        self._groups = groups
        self._in_turns = in_turns
        self._steps: dict[str, Series[int]] = {}
        self._used: dict[str, Series[Usage]] = {}
        self._job: Series[int] = Series(LONGEST_S)
        self._last: dict[str, int] = {}
        self._made: Counter[str] = Counter()
        self._moved = 0
        self._looked_at: float | None = None
        self._since: dict[str, tuple[float, Counter[str]]] = {}

    def made(self, now: float, task: str, steps: int) -> None:
        """Note how many steps a task has made; fewer than before if it was restarted."""
        before = self._last.get(task)
        self._last[task] = steps
        if before is None:
            self._steps[task] = Series(LONGEST_S)
        else:
            self._made[task] += steps - before if steps >= before else steps
        if steps != before:
            self.moved(now)
        self._steps[task].add(now, self._made[task])

    def moved(self, now: float) -> None:
        """Note that a task has made a step."""
        self._moved += 1
        self._job.add(now, self._moved)

    def used(self, now: float, by_task: Mapping[str, Usage]) -> None:
        """Note the usage of each task since its start."""
        for task, usage in by_task.items():
            self._used.setdefault(task, Series(LONGEST_S)).add(now, usage)

    def forget(self, now: float, task: str) -> Straggled | None:
        """Drop a task that has ended, restarts or is silent; returns a Straggled if it was a
        straggler."""
        self._steps.pop(task, None)
        self._last.pop(task, None)
        self._used.pop(task, None)
        return self._over(now, task)

    def pause(self) -> None:
        """Note that the job does not make steps now; only later steps are compared."""
        self._steps.clear()
        self._last.clear()
        self._used.clear()
        self._job = Series(LONGEST_S)

    def look(self, now: float) -> Iterator[Straggling | Straggled]:
        """Yields the changes; to be called about once a second."""
        before, self._looked_at = self._looked_at, now
        if before is not None and now - before > LONGEST_PAUSE_S:
            self.pause()
        windows = [window(self._steps, now, seconds) for seconds in WINDOWS_S]
        borders = self._working(now)
        strains = self._strains(borders) if borders else {}
        for group in self._groups:
            for task in group:
                judgment = self._judged(task, group, now, windows, strains)
                if isinstance(judgment, Straggling) and task not in self._since:
                    self._since[task] = (
                        now - judgment.seconds,
                        self._made_before(group, judgment, now),
                    )
                    yield judgment
                elif judgment is False and (over := self._over(now, task)):
                    yield over

    def end(self, now: float) -> list[Straggled]:
        """End the attempt; returns all tasks that are stragglers now."""
        remarks = [self._over(now, task) for task in list(self._since)]
        return [over for over in remarks if over]

    def _over(self, now: float, task: str) -> Straggled | None:
        if task not in self._since:
            return None
        since, before = self._since.pop(task)
        steps_made = {name: self._made[name] - count for name, count in before.items()}
        share = (
            steps_made[task] / sum(steps_made.values())
            if task in self._made and sum(steps_made.values())
            else None
        )
        return Straggled(task, now - since, share)

    def _made_before(self, group: Sequence[str], found: Straggling, now: float) -> Counter[str]:
        """The group's steps when it became a straggler."""
        before: Counter[str] = Counter()
        for name in group:
            if name not in self._steps:  # it has made none yet, or reports none
                before[name] = self._made[name]
            elif values := self._steps[name].at([now - found.seconds]):
                before[name] = values[0]
        return before

    def _judged(
        self,
        task: str,
        group: Sequence[str],
        now: float,
        windows: Sequence[Window],
        strains: Mapping[str, Sequence[Strain]],
    ) -> Straggling | bool | None:
        """A Straggling; False if the task is not a straggler, None if that is unknown."""
        own_pace = pace(task, group, windows)
        if own_pace and not own_pace.is_alike:
            if own_pace.is_slow:
                return self._by_steps(task, own_pace, now)
            return False if own_pace.keeps_up else None
        if not own_pace and task in self._steps:
            return None
        return self._by_limits(task, group, strains)

    def _by_steps(self, task: str, found: Pace, now: float) -> Straggling:
        why = self._strains([now - found.seconds, now]).get(task)
        cause = why[0].cause if why else UNKNOWN
        return Straggling(
            task, found.seconds, cause, self._limit(task, cause), found.steps_per_s,
            found.others_per_s, found.share,
        )  # fmt: skip

    def _by_limits(
        self, task: str, group: Sequence[str], strains: Mapping[str, Sequence[Strain]]
    ) -> Straggling | bool | None:
        task_strain = strains.get(task)
        others = [strains[name] for name in group if name != task and name in strains]
        # Tasks that make the same steps wait for no more than one, however idle they are.
        if not task_strain or not others or (task not in self._steps and are_idle(others)):
            return None
        held = {cause: reached_alone(cause, task_strain, others) for cause in (CPU, BANDWIDTH)}
        for cause, of_parts in held.items():
            if all(of_parts):
                slowed = (
                    sum(part.slowed for part in task_strain) / len(task_strain)
                    if cause == CPU
                    else None
                )
                seconds = sum(part.seconds for part in task_strain)
                return Straggling(task, seconds, cause, self._limit(task, cause), slowed=slowed)
        return None if any(map(any, held.values())) else False

    def _working(self, now: float) -> list[float] | None:
        """The borders of the first window with steps of the job in each part; those of the shortest
        one if no task reports steps."""
        if not self._moved:
            return parts(now, WINDOWS_S[0])
        for seconds in WINDOWS_S:
            borders = parts(now, seconds)
            values = self._job.at(borders)
            if values and all(increases(values)):
                return borders
        return None

    def _strains(self, borders: Sequence[float]) -> dict[str, list[Strain]]:
        """The strains between these times, for tasks that were connected all the time."""
        usage = {task: series.at(borders) for task, series in self._used.items()}
        spans = list(zip(borders, borders[1:]))
        return {
            task: [
                strain(before, after, end - begin, in_turns=task in self._in_turns)
                for (before, after), (begin, end) in zip(zip(used, used[1:]), spans)
            ]
            for task, used in usage.items()
            if used is not None
        }

    def _limit(self, task: str, cause: str) -> float | None:
        used = self._used[task].at([self._looked_at]) if task in self._used else None
        return {CPU: used[0].cpus, BANDWIDTH: used[0].bandwidth}.get(cause) if used else None
