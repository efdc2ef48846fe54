"""Training speed in containers, against the same tasks as bare processes of the host.

Both ways run the same files with the same native servers; only the container differs.
"""

from __future__ import annotations

from tests.bench.bare import bare_root, run_bare, why_not
from tests.bench.bench import Bench, compose, load, removed
from tests.bench.clusters import kit_file
from tests.bench.job_said import job_said
from tests.bench.measured import Bar, Measured, Result, Skipped

PAIRS = 6
KEY, TITLE = "steps", "training speed in containers"
WORKERS, PS = 2, 2
ARGS = ("--epochs", "6", "--steps-per-epoch", "250")
"""The first epoch traces and warms up, and does not count."""


def measure(bench: Bench) -> list[Result]:
    if reason := why_not():
        return [Skipped(KEY, TITLE, reason)]
    containers, bare, load_before = [], [], load()
    with bare_root(bench) as root:
        for turn in bench.times(PAIRS):
            ways = [
                lambda: containers.append(_in_containers(bench)),
                lambda: bare.append(job_said(run_bare(bench, root, WORKERS, PS, ARGS))),
            ]
            for way in ways if turn % 2 else reversed(ways):  # what changes slowly hits both
                way()
            bench.say(
                f"training: bare {bare[-1]['steps_per_s']:.1f} steps/s,"
                f" in containers {containers[-1]['steps_per_s']:.1f}"
            )
    speeds = (tuple(one["steps_per_s"] for one in way) for way in (containers, bare))
    return [
        Measured(
            *(KEY, TITLE, "steps/s", Bar(0.97, at_least=True), *speeds, "bare processes"),
            load=(load_before, load()),
        )
    ]


def _in_containers(bench: Bench) -> dict[str, float]:
    _, file = kit_file(bench, WORKERS, PS, *ARGS)
    with removed(file):
        return job_said(compose(file, "up", "--no-color"))
