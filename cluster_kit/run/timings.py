"""Measures how long the steps of a run take."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from cluster_kit.observe.state import RunState


@dataclass
class Stopwatch:
    """Seconds by name of the step, summed if a step is done twice; starts when it is made."""

    timings: dict[str, float] = field(default_factory=dict)
    began: float = field(default_factory=lambda: time.monotonic())

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Add the time of the `with` block to this step."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.timings[name] = self.timings.get(name, 0.0) + time.monotonic() - began

    @property
    def since_start_s(self) -> float:
        """Seconds since the steps before the start of the containers were done."""
        return time.monotonic() - self.began - sum(self.timings.values())

    def read(self, seen: RunState, since: float) -> dict[str, float]:
        """All timings in seconds, to the millisecond, with the training's and the total."""
        timings = {**self.timings, **training_times(seen, since)}
        timings["total"] = time.monotonic() - self.began
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
