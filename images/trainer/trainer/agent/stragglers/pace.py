"""The steps of tasks that do the same work, compared. Pure.

In synchronous training all make the same steps: then nothing shows here, see limits.py.
"""

from __future__ import annotations

import statistics
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from trainer.contract.times import STRAGGLER_FACTOR, STRAGGLER_S

Value = TypeVar("Value")
PARTS = 4
"""What is said of a window holds in each of its parts: one long pause is nothing of the kind."""


class Series(Generic[Value]):
    """Values, each valid from its time (seconds) to the next one's; those too old are dropped."""

    def __init__(self, longest_s: float) -> None:
        self._longest_s = longest_s
        self._times: list[float] = []
        self._values: list[Value] = []

    def add(self, now: float, value: Value) -> None:
        """Note the value at `now`, which never goes back."""
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
    """From each value to the next."""
    return [later - before for before, later in zip(values, values[1:])]


WINDOWS_S = tuple(STRAGGLER_S * factor for factor in (1, 2, 4, 8))
"""The first one in which a task makes a step in each part: steps may take long."""
LONGEST_S = WINDOWS_S[-1] + 10
KEEPS_UP = 1.5
"""One that is no more than so many times slower is a straggler no longer."""
ALIKE = 1.25
"""Tasks whose steps differ by less wait for each other, most likely."""


@dataclass(frozen=True)
class Pace:
    """The steps of one task and of the others within the last seconds, by part of them."""

    seconds: float
    own: tuple[int, ...]
    others: Mapping[str, tuple[int, ...]]

    @property
    def steps_per_s(self) -> float:
        return sum(self.own) / self.seconds

    @property
    def others_per_s(self) -> float:
        """The median of the others, the lower one of two: if most are slow, nobody is one."""
        return statistics.median_low(map(sum, self.others.values())) / self.seconds

    @property
    def share(self) -> float:
        """Of the steps of all."""
        everybody = sum(self.own) + sum(map(sum, self.others.values()))
        return sum(self.own) / everybody if everybody else 0.0

    @property
    def is_slow(self) -> bool:
        """More than STRAGGLER_FACTOR times slower than the others' median, in each part."""
        medians = map(statistics.median_low, zip(*self.others.values()))
        return all(own * STRAGGLER_FACTOR < others for own, others in zip(self.own, medians))

    @property
    def keeps_up(self) -> bool:
        return self.steps_per_s * KEEPS_UP >= self.others_per_s

    @property
    def is_alike(self) -> bool:
        """Whether all make the same steps, as in synchronous training."""
        sums = [sum(self.own), *map(sum, self.others.values())]
        return max(sums) <= ALIKE * min(sums)


Window = Mapping[str, tuple[int, ...]]
"""Steps of each task by part of a window; of those that were there all the time."""


def window(steps: Mapping[str, Series[int]], now: float, seconds: float) -> Window:
    """The window of so many seconds that ends `now`."""
    borders = parts(now, seconds)
    values = {task: series.at(borders) for task, series in steps.items()}
    return {task: tuple(increases(at)) for task, at in values.items() if at is not None}


def pace(task: str, group: Sequence[str], windows: Sequence[Window]) -> Pace | None:
    """The task's pace beside that of the others in `group`; None if it cannot be told (yet).

    A task that makes no step in a part of every window has something else to do: it saves, waits,
    or has ended. Whether it is silent or hangs is asked elsewhere. `windows`: of WINDOWS_S.
    """
    for seconds, steps in zip(WINDOWS_S, windows):
        own = steps.get(task)
        if own and all(own):
            others = {name: steps[name] for name in group if name != task and name in steps}
            return Pace(seconds, own, others) if others else None
    return None
