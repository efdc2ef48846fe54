"""Measures the whole job, from `docker compose up` until everything is removed."""

from __future__ import annotations

import time

from tests.bench.bench import Bench, BenchError, compose, docker, load, removed
from tests.bench.clusters import kit_file, plain_file
from tests.bench.job_said import job_said
from tests.bench.measured import Bar, Measured

SIZES = ((2, 2, 3, Bar(0.5)), (8, 4, 2, Bar(0.35)))
"""Workers, ps, pairs, bar."""


def measure(bench: Bench) -> list[Measured]:
    return [_measure(bench, *size) for size in bench.sizes(SIZES)]


def _measure(bench: Bench, workers: int, ps: int, pairs: int, bar: Bar) -> Measured:
    title = f"whole job, {workers} workers + {ps} ps"
    plain, kit, load_before = [], [], load()
    for _ in bench.times(pairs):
        plain.append(_plain(bench, workers, ps))
        kit.append(_kit(bench, workers, ps))
        bench.say(f"{title}: plain {plain[-1]:.1f} s, kit {kit[-1]:.1f} s")
    key = f"whole_job_{workers}_{ps}"
    return Measured(key, title, "s", bar, tuple(kit), tuple(plain), load=(load_before, load()))


def _kit(bench: Bench, workers: int, ps: int) -> float:
    """Time the kit's way: `up` returns by itself, since the job's end ends every task."""
    _, file = kit_file(bench, workers, ps)
    with removed(file):
        began = time.monotonic()
        output = compose(file, "up", "--no-color")
        compose(file, "down")
        took = time.monotonic() - began
    job_said(output)
    return took


def _plain(bench: Bench, workers: int, ps: int) -> float:
    """Time the plain way: the servers never end, so they are taken down when the chief has
    ended."""
    cluster, file = plain_file(bench, workers, ps)
    with removed(file):
        began = time.monotonic()
        compose(file, "up", "--detach")
        code = docker("wait", f"{cluster.name}-chief-0").strip()
        compose(file, "down")
        took = time.monotonic() - began
    if code != "0":
        raise BenchError(f"the plain way's chief ended with exit code {code}")
    return took
