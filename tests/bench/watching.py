"""Measures the cost of watching a run of ten tasks: sampling inside them, and scraping /metrics."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cluster_kit.host import Moment
from cluster_kit.metrics.prometheus import text
from cluster_kit.run.run_directory import Record, write_record
from cluster_kit.run.run_report import RunMetrics
from cluster_kit.workspace import RunDirectory
from tests.bench.bench import Bench, compose, docker, load, removed
from tests.bench.clusters import kit_file, planned
from tests.bench.measured import Bar, Measured
from tests.bench.turns import Training, Turns

WORKERS, PS = 7, 2
OF_ROLE = {"chief": 1, "worker": WORKERS, "ps": PS}
REPEATS, SECONDS = 3, 10.0
HOUR, SCRAPES, EVERY_S = 3600, 60, 5


def measure(bench: Bench) -> list[Measured]:
    return [_sampling(bench), _scrape(bench)]


def _sampling(bench: Bench) -> Measured:
    """Returns percent of one core for all ten tasks; each has trained and has open connections."""
    training = Training("tiny", 2, 20, WORKERS, PS)
    cluster, file = kit_file(bench, WORKERS, PS, *training.arguments)
    took, load_before = [], load()
    with removed(file):
        turns = Turns.under(file.parent / "output", training.steps)
        compose(file, "up", "--detach")
        turns.take(0)
        for _ in bench.times(REPEATS):
            with ThreadPoolExecutor(len(OF_ROLE)) as pool:
                shares = dict(zip(OF_ROLE, pool.map(lambda role: _probe(cluster.name, role),
                                                    OF_ROLE), strict=True))  # fmt: skip
            took.append(100 * sum(count * shares[role] for role, count in OF_ROLE.items()))
            of_each = ", ".join(f"{role} {100 * share:.3f} %" for role, share in shares.items())
            bench.say(f"sampling of ten tasks: {took[-1]:.2f} % of a core ({of_each})")
    return Measured(
        *("sampling", "sampling of ten tasks", "% of a core", Bar(1.0), tuple(took)),
        load=(load_before, load()),
    )


def _probe(cluster: str, role: str) -> float:
    probe = Path(__file__).with_name("sampling_probe.py").read_text()
    return float(docker("exec", f"{cluster}-{role}-0", "python3", "-c", probe, str(SECONDS)))


def _scrape(bench: Bench) -> Measured:
    """Returns CPU milliseconds of a scrape every five seconds, in a run that has lasted an hour."""
    cluster = planned(bench, "scrape", WORKERS, PS)
    run = RunDirectory(bench.scratch / "scraped")
    run.progress.mkdir(parents=True)
    write_record(run, Record("id", cluster, Moment(0.0, 0.0, ""), 0.0, {}, {}))
    names = [task.name for task in cluster.tasks]
    for second in range(HOUR):
        _a_second(run, names, second)
    metrics, took, load_before = RunMetrics(run), [], load()
    before = time.process_time()
    text(metrics.values(now=HOUR))
    bench.say(f"the first scrape, after an hour: {time.process_time() - before:.2f} s")
    for scrape in range(SCRAPES):
        begin = HOUR + scrape * EVERY_S
        for second in range(begin, begin + EVERY_S):
            _a_second(run, names, second)
        before = time.process_time()
        text(metrics.values(now=begin + EVERY_S))
        took.append(1000 * (time.process_time() - before))
    return Measured(
        *("scrape", "a scrape of ten tasks", "ms", Bar(50.0), tuple(took)),
        load=(load_before, load()),
    )


def _a_second(run: RunDirectory, names: list[str], second: int) -> None:
    for name in names:
        use = {"time": second, "event": "usage", "cpu_s": second / 2, "memory": 2e9,
               "rx_bytes": 1000 * second, "tx_bytes": 1000 * second,
               "sent_to": dict.fromkeys(names, 100 * second)}  # fmt: skip
        with (run.progress / f"{name}.usage").open("a") as file:
            file.write(json.dumps(use) + "\n")
    step = {"time": second, "event": "step", "step": 10 * second, "steps_per_s": 10, "loss": 1}
    with (run.progress / f"{names[0]}.jsonl").open("a") as file:
        file.write(json.dumps(step) + "\n")
