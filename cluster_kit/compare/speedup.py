"""Measures how the speed of a training grows with the number of emulated machines.

If the host has too few CPUs for all machines at once, the machines are scaled down: CPUs and
bandwidth by the same factor, so that the ratio of computation to communication stays the same. This
lowers all speeds by that factor, and does not change the speed-ups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from cluster_kit.compare.measure import MACHINE_CPUS, MACHINE_GB, MACHINE_MBIT
from cluster_kit.errors import Interrupted, KitError
from cluster_kit.host import Host
from cluster_kit.roles import CHIEF, PS, WORKER
from cluster_kit.run.launch import launch
from cluster_kit.run.outcome import Outcome
from cluster_kit.run.request import Request
from cluster_kit.show.view import View
from cluster_kit.workspace import Workspace

MANIFEST = "detection-machines"
USED_PART = 0.9
"""Fraction of the host's CPUs that all machines share; the rest is for the engine and the kit."""
LEAST_GB = 1.5
"""The minimum memory of a machine in GB, which TensorFlow's client needs."""


@dataclass(frozen=True)
class Machines:
    """The emulated machine of each task of a run; `scale` is 1 for whole machines."""

    scale: float
    memory_gb: float

    @property
    def limits(self) -> dict[str, Any]:
        """The limits of one task, as in a manifest."""
        return {
            "cpus": round(MACHINE_CPUS * self.scale, 3),
            "memory": f"{self.memory_gb:.2f}g",
            "bandwidth": f"{MACHINE_MBIT * self.scale:.2f}mbit",
        }


@dataclass(frozen=True)
class Speed:
    """The result of one run; None for figures of a failed one."""

    workers: int
    images_per_s: float | None = None
    updates_per_s: float | None = None
    staleness_mean: float | None = None
    failed: str = ""


def machines(workers: int, cpus: float, memory_gb: float) -> Machines:
    """The machines that fit on a host: one for each worker, a master and a ps.

    Args:
        cpus: of the host, in cores.
        memory_gb: of the host.
    """
    count = workers + 2
    scale = min(1.0, USED_PART * cpus / (MACHINE_CPUS * count))
    return Machines(round(scale, 4), min(MACHINE_GB, max(LEAST_GB, USED_PART * memory_gb / count)))


def overrides(workers: int, each: Machines, steps: int, update: str) -> dict[str, Any]:
    """The manifest's keys that a run overrides: tasks, their limits, and the length."""
    return {
        "name": f"speedup-{workers}",
        WORKER.name: workers,
        "role": {role.name: each.limits for role in (CHIEF, WORKER, PS)},
        "extra_args": [
            *("--update", update, "--steps", str(steps * (1 if update == "sync" else workers + 1))),
            *("--no-final-score", "--save-secs", "0", "--summary-steps", "0"),
        ],
    }


def measure_all(
    host: Host,
    counts: Sequence[int],
    each: Machines,
    steps: int,
    update: str,
    workspace: Workspace,
    new_view: Callable[[], View],
) -> Iterator[Speed]:
    """Yields the speed for each number of workers; a failed run yields a Speed, too.

    Args:
        steps: number of steps of each replica.
    Raises:
        Interrupted: Ctrl-C was pressed; the running cluster was removed.
    """
    for workers in counts:
        view = new_view()
        request = Request(MANIFEST, overrides(workers, each, steps, update))
        host.interrupts.interrupt_once()  # the end of the previous run ignored these signals
        try:
            outcome = launch(host, request, workspace, view, keep=False, resume=False)
        except KitError as error:
            yield Speed(workers, failed=error.message)
            continue
        finally:
            view.close()
        if outcome.exit_code == Interrupted.exit_code:
            raise Interrupted("the measurement was interrupted", "the results so far are shown")
        yield speed_of(workers, outcome)


def speed_of(workers: int, outcome: Outcome) -> Speed:
    """The measured speed of a run that has ended."""
    if not outcome.success:
        return Speed(workers, failed=outcome.message)
    metrics = outcome.metrics
    return Speed(
        workers,
        metrics.get("images_per_second"),
        metrics.get("steps_per_second"),
        metrics.get("staleness_mean"),
    )


def speedups(speeds: Sequence[Speed]) -> list[float | None]:
    """Each run's images per second divided by the first run's; None if either is unknown."""
    first = speeds[0].images_per_s if speeds else None
    return [
        round(speed.images_per_s / first, 2) if first and speed.images_per_s else None
        for speed in speeds
    ]


def facts(speeds: Sequence[Speed], each: Machines, update: str) -> dict[str, Any]:
    """The content of speedup.json."""
    return {
        "manifest": MANIFEST,
        "update": update,
        "machine": {"scale": each.scale, **each.limits},
        "results": [
            {**asdict(speed), "speedup": ratio}
            for speed, ratio in zip(speeds, speedups(speeds), strict=True)
        ],
    }
