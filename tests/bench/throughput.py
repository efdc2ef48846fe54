"""Compares the training speed in containers with that of the same tasks as bare processes.

Both ways run the same files with the same native servers. They differ in the container, and in the
image's MALLOC_ variables, which processes without the kit do not have. Both are up at the same time
and train in turns of about a second, since the speed of a shared machine changes during a run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from tests.bench.bare import bare_job, why_not
from tests.bench.bench import Bench, compose, load, removed
from tests.bench.clusters import kit_file
from tests.bench.measured import Bar, Measured, Result, Skipped
from tests.bench.turns import Training, Turns

PAIRS, QUICK_PAIRS = 20, 8
WARM_UP = 2
"""The number of first turns that do not count: they trace the functions and fill caches."""
BAR = Bar(0.97, at_least=True)


@dataclass(frozen=True)
class Kind:
    """A model of the job, and the number of its steps that take about a second."""

    key: str
    title: str
    model: str
    steps: int
    bar: Bar | None


KINDS = (
    Kind("steps", "training speed", "cnn", 50, BAR),
    # A step of this model is little but remote calls: it shows the cost of bridge, firewall and
    # seccomp.
    Kind("steps_tiny", "training speed, steps of 10 ms", "tiny", 120, None),
)


def measure(bench: Bench) -> list[Result]:
    reason = why_not()
    return [
        Skipped(kind.key, kind.title, reason) if reason else _measure(bench, kind)
        for kind in bench.sizes(KINDS)
    ]


def _measure(bench: Bench, kind: Kind) -> Measured:
    training = Training(kind.model, WARM_UP + len(bench.times(PAIRS, QUICK_PAIRS)), kind.steps)
    load_before = load()
    speeds: dict[str, list[float]] = {"containers": [], "bare": []}
    with _in_containers(bench, training) as inside, bare_job(bench, training) as outside:
        jobs = [("containers", inside), ("bare", outside)]
        for number in range(training.turns):
            for name, job in jobs if number % 2 else reversed(jobs):
                speeds[name].append(job.take(number))
            inner, outer = speeds["containers"][-1], speeds["bare"][-1]
            if number >= WARM_UP:
                bench.say(f"{kind.title}: bare {outer:.1f} steps/s, in containers {inner:.1f}")
    kit, bare = (tuple(speeds[name][WARM_UP:]) for name in ("containers", "bare"))
    return Measured(
        *(kind.key, kind.title, "steps/s", kind.bar, kit, bare, "bare processes"),
        load=(load_before, load()),
    )


@contextlib.contextmanager
def _in_containers(bench: Bench, training: Training) -> Iterator[Turns]:
    _, file = kit_file(bench, training.workers, training.ps, *training.arguments)
    turns = Turns.under(file.parent / "output", training.steps)
    with removed(file):
        compose(file, "up", "--detach")
        yield turns
