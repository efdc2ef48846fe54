"""Compares the training speed in containers with that of the same tasks as bare processes.

Both ways run the same files with the same native servers. They differ in the container, and in the
image's MALLOC_ variables, which processes without the kit do not have. Both are up at the same time
and train in turns of about a second, since the speed of a shared machine changes during a run.

How long a step takes is the same on each machine: the batch is chosen for that. In long steps the
tasks compute; short ones are little but remote calls, so they show the cost of bridge, firewall and
seccomp.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tests.bench.bare import bare_job, why_not
from tests.bench.bench import Bench, compose, load, removed
from tests.bench.clusters import kit_file
from tests.bench.measured import Bar, Measured, Result, Skipped
from tests.bench.turns import Training, Turns

PAIRS, QUICK_PAIRS = 20, 8
WARM_UP = 2
"""The number of first turns that do not count: they trace the functions and fill caches."""
MODEL = "cnn"
BATCHES = (8, 256)
"""The batches whose steps are timed to choose one."""
CALIBRATION_TURNS, CALIBRATION_STEPS = 3, 40


@dataclass(frozen=True)
class Kind:
    """A training whose steps take about `step_ms` milliseconds in bare processes."""

    key: str
    step_ms: int
    bar: Bar

    @property
    def title(self) -> str:
        return f"training speed, steps of {self.step_ms} ms"


KINDS = (
    Kind("steps", 40, Bar(0.97, at_least=True)),
    Kind("steps_short", 10, Bar(0.93, at_least=True)),
)


def measure(bench: Bench) -> list[Result]:
    if reason := why_not():
        return [Skipped(kind.key, kind.title, reason) for kind in bench.sizes(KINDS)]
    timed = {batch: _step_ms(bench, batch) for batch in BATCHES}
    return [_measure(bench, kind, batch_for(kind.step_ms, timed)) for kind in bench.sizes(KINDS)]


def batch_for(step_ms: float, timed: Mapping[int, float]) -> int:
    """Return the batch whose step takes about `step_ms`, at least 1.

    Args:
        timed: the milliseconds of a step for two batches; between and beyond them a step takes a
            fixed time and a time for each image.
    """
    (small, fast), (large, slow) = sorted(timed.items())
    of_image = (slow - fast) / (large - small)
    return max(1, round(small + (step_ms - fast) / of_image)) if of_image > 0 else small


def _step_ms(bench: Bench, batch: int) -> float:
    """The milliseconds of a step of this batch in bare processes, in the fastest turn."""
    training = Training(MODEL, CALIBRATION_TURNS, CALIBRATION_STEPS, batch=batch)
    with bare_job(bench, training) as job:
        fastest = max(job.take(number) for number in range(training.turns))
    bench.say(f"training speed: a step of {batch} images takes {1000 / fastest:.1f} ms")
    return 1000 / fastest


def _measure(bench: Bench, kind: Kind, batch: int) -> Measured:
    turns = WARM_UP + len(bench.times(PAIRS, QUICK_PAIRS))
    training = Training(MODEL, turns, 1000 // kind.step_ms, batch=batch)
    bench.say(f"{kind.title}: {batch} images for each")
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
