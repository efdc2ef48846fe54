"""Measures `docker stop` of one idle server, with Docker's default grace and as the kit renders
it."""

from __future__ import annotations

import time
from pathlib import Path

from cluster_kit.resolved import Cluster
from tests.bench.bench import Bench, BenchError, compose, docker, load, removed
from tests.bench.clusters import kit_file, plain_file
from tests.bench.measured import Bar, Measured

PAIRS = 2
TASK = "ps-0"
READY_S = 60.0


def measure(bench: Bench) -> list[Measured]:
    plain, kit, load_before = [], [], load()
    for _ in bench.times(PAIRS):
        plain.append(_stop(*plain_file(bench, 1, 1)))
        kit.append(_stop(*kit_file(bench, 1, 1)))
        bench.say(f"stop: plain {plain[-1]:.2f} s, kit {kit[-1]:.2f} s")
    return [
        Measured(
            *("stop", "stop of an idle server", "s", Bar(0.1), tuple(kit), tuple(plain)),
            load=(load_before, load()),
        )
    ]


def _stop(cluster: Cluster, file: Path) -> float:
    container = f"{cluster.name}-{TASK}"
    with removed(file):
        compose(file, "up", "--detach", TASK)
        _wait_until_ready(container)
        began = time.monotonic()
        docker("stop", container)
        return time.monotonic() - began


def _wait_until_ready(container: str) -> None:
    """Wait until the server is ready; both ways print the same words then."""
    until = time.monotonic() + READY_S
    while "server ready" not in docker("logs", container):
        if time.monotonic() > until:
            raise BenchError(f"{container} was not ready after {READY_S:.0f} s")
        time.sleep(0.2)
