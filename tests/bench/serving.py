"""Measures the cost of the live page: a simulated run of 50 tasks that each write four times a
second.

python -m tests.bench.serving ROOT NAME serves the run in ROOT until stdin is closed; `measure`
starts it as a separate process, writes, and reads the pages' streams.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from cluster_kit.resolved import Cluster
from cluster_kit.serve.start import serving
from tests.bench.bench import Bench, BenchError, load
from tests.bench.measured import Bar, Measured
from tests.make import cluster
from tests.unit.serve.made_up import MadeUp

WORKERS, PS = 45, 4
UPDATES_PER_S, USAGE_EVERY, SENT_EVERY = 4, 4, 20
SETTLE_S, SECONDS, PATIENCE_S = 5.0, 10.0, 60.0
EARLIER_S = 300
"""The age of the run when the first page is opened."""
REPEATS = 2
"""Repetitions differ by 0.001 of a core, and the bar is at 0.05."""
PAGES = {1: "one page", 0: "nobody looks", 3: "three pages"}
BAR = Bar(0.05)


def measure(bench: Bench) -> list[Measured]:
    found = []
    for pages, words in bench.sizes([*PAGES.items()]):
        load_before = load()
        took = []
        for number in bench.times(REPEATS):
            took.append(_once(bench.scratch / f"serve-{pages}-{number}", pages))
            bench.say(f"50 tasks at {UPDATES_PER_S} updates/s, {words}: {took[-1]:.3f} of a core")
        key, title = f"serve-{pages}", f"live page of 50 tasks, {words}: share of a core"
        found.append(Measured(key, title, "", BAR, tuple(took), load=(load_before, load())))
    return found


def _once(root: Path, pages: int) -> float:
    """Returns the share of one core that the server takes while this number of pages is open."""
    root.mkdir()
    made = MadeUp(root, _fifty())
    ticks = iter(range(10**9))
    for _ in range(EARLIER_S * UPDATES_PER_S):
        _write(made, next(ticks))
    over = threading.Event()
    with _server(root, made.run.path) as (process, url), contextlib.ExitStack() as open_pages:
        heard = [open_pages.enter_context(_page(url, over)) for _ in range(pages)]
        try:
            until = time.monotonic() + PATIENCE_S
            while not all(page[0] for page in heard) and time.monotonic() < until:
                time.sleep(0.1)  # It reads everything that was written before.
            _write_for(made, ticks, SETTLE_S)
            before, told = _cpu_s(process.pid), [page[0] for page in heard]
            began = time.monotonic()
            _write_for(made, ticks, SECONDS)
            share = (_cpu_s(process.pid) - before) / (time.monotonic() - began)
            if any(page[0] <= count for page, count in zip(heard, told, strict=True)):
                raise BenchError("a page was told nothing")
        finally:
            over.set()
    return share


def _fifty() -> Cluster:
    return cluster(worker=WORKERS, ps=PS)


def _write(made: MadeUp, tick: int) -> None:
    """Write one update of each task."""
    at = tick / UPDATES_PER_S
    for number, task in enumerate(made.cluster.tasks):
        made.say(
            task.name, at, "step", step=tick, steps_per_s=4.0 + number / 10, loss=100 / (tick + 1)
        )
        if tick % USAGE_EVERY == 0:
            sent = {f"ps-{one}": at * 1e5 for one in range(PS)} if tick % SENT_EVERY == 0 else None
            made.use(task.name, at, **({"sent_to": sent} if sent else {}))


def _write_for(made: MadeUp, ticks: Iterator[int], seconds: float) -> None:
    until = time.monotonic() + seconds
    due = time.monotonic()
    while time.monotonic() < until:
        _write(made, next(ticks))
        due += 1 / UPDATES_PER_S
        time.sleep(max(0.0, due - time.monotonic()))


@contextlib.contextmanager
def _server(root: Path, run: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [sys.executable, "-m", "tests.bench.serving", str(root), run.name]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout and process.stdin
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.stdin.close()
            process.wait(30)


@contextlib.contextmanager
def _page(url: str, over: threading.Event) -> Iterator[list[int]]:
    """Open a page; returns the number of received bytes, in a list with one item."""
    heard = [0]
    events = url.replace("?", "/events?")
    with urllib.request.urlopen(events, timeout=30) as stream:

        def read() -> None:
            while not over.is_set() and (line := stream.readline()):
                heard[0] += len(line)

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        yield heard


def _cpu_s(pid: int) -> float:
    """Returns the CPU seconds of a process, with all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _serve(root: Path, name: str) -> None:
    """Serve the run that another process simulates, until stdin is closed."""
    made = MadeUp.of(root, _fifty(), name)
    made.begin()
    with serving(made.site, made.cluster.name) as url:
        print(url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    _serve(Path(sys.argv[1]), sys.argv[2])
