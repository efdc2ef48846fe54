"""Measures how long the steps of a run take."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from cluster_kit.observe.state import RunState
from cluster_kit.util.clock import Clock


class Stopwatch:
    """Seconds by name of the step, summed if a step is done twice.

    Args:
        clock: what it measures by.
        timings: of steps that are done already.
        ago_s: how long ago the first step began.
    """

    def __init__(
        self, clock: Clock, timings: Mapping[str, float] = MappingProxyType({}), ago_s: float = 0.0
    ) -> None:
        self._clock = clock
        self.timings = dict(timings)
        self.began = clock.monotonic() - ago_s

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Add the time of the `with` block to this step."""
        began = self._clock.monotonic()
        try:
            yield
        finally:
            self.timings[name] = self.timings.get(name, 0.0) + self._clock.monotonic() - began

    @property
    def since_start_s(self) -> float:
        """Seconds since the steps before the start of the containers were done."""
        return self._clock.monotonic() - self.began - sum(self.timings.values())

    def read(self, seen: RunState, since: float) -> dict[str, float]:
        """All timings in seconds, to the millisecond, with the training's and the total."""
        timings = {**self.timings, **training_times(seen, since)}
        timings["total"] = self._clock.monotonic() - self.began
        return {name: round(value, 3) for name, value in timings.items()}


def training_times(seen: RunState, since: float) -> dict[str, float]:
    """Seconds from `since` to the leader's first step, and from there to its end, if known."""
    leader = seen.leader
    steps = [e.time for e in seen.entries if e.task == leader and e.event in ("step", "epoch")]
    if not steps:
        return {}
    ends = [e.time for e in seen.events if e.task == leader and e.action == "die"]
    times = {"first_step": steps[0] - since}
    return {**times, "train": ends[-1] - steps[0]} if ends else times
