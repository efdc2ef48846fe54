"""Who is a straggler, from when to when. Pure: the clock is the caller's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from trainer.agent.stragglers.limits import (
    BANDWIDTH,
    CPU,
    UNKNOWN,
    Strain,
    are_idle,
    reached_alone,
    strain,
)
from trainer.agent.stragglers.pace import (
    LONGEST_S,
    WINDOWS_S,
    Pace,
    Series,
    Window,
    increases,
    pace,
    parts,
    window,
)
from trainer.agent.usage import Usage

LONGEST_PAUSE_S = 5.0
"""Between two looks; what was seen before a longer one of our own says nothing."""


@dataclass(frozen=True)
class Straggling:
    """A task is a straggler, and has been for some seconds. What is unknown is None."""

    task: str
    seconds: float
    cause: str
    limit: float | None
    """Of the cause: CPUs, or bits per second."""
    steps_per_s: float | None = None
    others_steps_per_s: float | None = None
    """The median of the others."""
    share: float | None = None
    """Of the steps of all, 0 to 1."""
    slowed: float | None = None
    """So many times, by its CPU limit, where steps do not show it."""


@dataclass(frozen=True)
class Straggled:
    """A task is a straggler no longer, after so many seconds with this share of all steps."""

    task: str
    seconds: float
    share: float | None


class Stragglers:
    """One attempt at a job; `now` in seconds of a monotonic clock.

    `groups`: the names of the tasks that do the same work.
    """

    def __init__(self, groups: Sequence[Sequence[str]]) -> None:
        self._groups = groups
        self._steps: dict[str, Series[int]] = {}
        self._used: dict[str, Series[Usage]] = {}
        self._job: Series[int] = Series(LONGEST_S)
        self._last: dict[str, int] = {}
        self._made: Counter[str] = Counter()
        self._moved = 0
        self._looked_at: float | None = None
        self._since: dict[str, tuple[float, Counter[str]]] = {}

    def made(self, now: float, task: str, steps: int) -> None:
        """A task has made so many steps itself; less than before, if it was started again."""
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
        """Somebody has made a step."""
        self._moved += 1
        self._job.add(now, self._moved)

    def used(self, now: float, by_task: Mapping[str, Usage]) -> None:
        """What each task has used since its start."""
        for task, usage in by_task.items():
            self._used.setdefault(task, Series(LONGEST_S)).add(now, usage)

    def forget(self, now: float, task: str) -> Straggled | None:
        """It has ended, starts again or is silent; a Straggled if it was a straggler."""
        self._steps.pop(task, None)
        self._last.pop(task, None)
        self._used.pop(task, None)
        return self._over(now, task)

    def pause(self) -> None:
        """The job does something else than making steps: look at what comes after it only."""
        self._steps.clear()
        self._last.clear()
        self._used.clear()
        self._job = Series(LONGEST_S)

    def look(self, now: float) -> Iterator[Straggling | Straggled]:
        """Yields what has changed; to be called about once a second."""
        before, self._looked_at = self._looked_at, now
        if before is not None and now - before > LONGEST_PAUSE_S:
            self.pause()
        windows = [window(self._steps, now, seconds) for seconds in WINDOWS_S]
        borders = self._working(now)
        strains = self._strains(borders) if borders else {}
        for group in self._groups:
            for task in group:
                found = self._judged(task, group, now, windows, strains)
                if isinstance(found, Straggling) and task not in self._since:
                    self._since[task] = (now - found.seconds, self._made_before(group, found, now))
                    yield found
                elif found is False and (over := self._over(now, task)):
                    yield over

    def end(self, now: float) -> list[Straggled]:
        """The attempt is over: all that are stragglers now."""
        found = [self._over(now, task) for task in list(self._since)]
        return [over for over in found if over]

    def _over(self, now: float, task: str) -> Straggled | None:
        if task not in self._since:
            return None
        since, before = self._since.pop(task)
        made = {name: self._made[name] - count for name, count in before.items()}
        share = made[task] / sum(made.values()) if made and sum(made.values()) else None
        return Straggled(task, now - since, share)

    def _made_before(self, group: Sequence[str], found: Straggling, now: float) -> Counter[str]:
        """Steps of the group when it began; empty if they are unknown."""
        if found.task not in self._steps:
            return Counter()
        values = {n: self._steps[n].at([now - found.seconds]) for n in group if n in self._steps}
        return Counter({name: value[0] for name, value in values.items() if value})

    def _judged(
        self,
        task: str,
        group: Sequence[str],
        now: float,
        windows: Sequence[Window],
        strains: Mapping[str, Sequence[Strain]],
    ) -> Straggling | bool | None:
        """A Straggling, False if the task is no straggler, None if that cannot be told."""
        found = pace(task, group, windows)
        if found and not found.is_alike:
            if found.is_slow:
                return self._by_steps(task, found, now)
            return False if found.keeps_up else None
        if not found and task in self._steps:
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
        own = strains.get(task)
        others = [strains[name] for name in group if name != task and name in strains]
        if not own or not others or are_idle(others):
            return None
        held = {cause: reached_alone(cause, own, others) for cause in (CPU, BANDWIDTH)}
        for cause, of_parts in held.items():
            if all(of_parts):
                slowed = sum(part.slowed for part in own) / len(own) if cause == CPU else None
                seconds = sum(part.seconds for part in own)
                return Straggling(task, seconds, cause, self._limit(task, cause), slowed=slowed)
        return None if any(map(any, held.values())) else False

    def _working(self, now: float) -> list[float] | None:
        """The borders of the first window with steps of the job in each part; the shortest one if
        nobody reports any."""
        if not self._moved:
            return parts(now, WINDOWS_S[0])
        for seconds in WINDOWS_S:
            borders = parts(now, seconds)
            values = self._job.at(borders)
            if values and all(increases(values)):
                return borders
        return None

    def _strains(self, borders: Sequence[float]) -> dict[str, list[Strain]]:
        """Between each two of these times; of the tasks that were there all the time."""
        found = {task: series.at(borders) for task, series in self._used.items()}
        spans = list(zip(borders, borders[1:]))
        return {
            task: [
                strain(before, after, end - begin)
                for (before, after), (begin, end) in zip(zip(used, used[1:]), spans)
            ]
            for task, used in found.items()
            if used is not None
        }

    def _limit(self, task: str, cause: str) -> float | None:
        used = self._used[task].at([self._looked_at]) if task in self._used else None
        return {CPU: used[0].cpus, BANDWIDTH: used[0].bandwidth}.get(cause) if used else None
