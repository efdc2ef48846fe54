"""`make bench`: compares the kit with the plain way, prints a table, writes JSON, and draws a PNG.

python -m tests.bench [quick | MEASURE…] [--pairs N] [--image TAG] [--against FILE]; the exit code
is 1 if a goal is missed. build/bench/history.jsonl keeps every run, with the facts of the machine.
"""

from __future__ import annotations

import argparse
import contextlib
import secrets
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rich.console import Console

from cluster_kit.image.kit_image import image_present, image_tag
from cluster_kit.this_host import this_host
from tests.bench import (
    growth,
    idle_server,
    planning,
    serving,
    stop,
    throughput,
    watching,
    whole_job,
)
from tests.bench.bench import Bench, BenchError, load, remove_all
from tests.bench.machine import machine
from tests.bench.measured import Measured, Result, Skipped
from tests.bench.report import print_changes, print_table, read_json, write_json

MEASURES: dict[str, Callable[[Bench], Sequence[Result]]] = {
    "whole-job": whole_job.measure,
    "server": idle_server.measure,
    "stop": stop.measure,
    "planning": planning.measure,
    "watching": watching.measure,
    "serve": serving.measure,
    "throughput": throughput.measure,
}
ALONE: dict[str, Callable[[Bench], Sequence[Result]]] = {"growth": growth.measure}
"""Those that take half an hour: only if they are named."""
QUICK = "quick"
"""In place of a measure: the first size of each, measured once: three minutes."""
BUILD = Path(__file__).resolve().parents[2] / "build" / "bench"
BUSY = 0.35
"""Load per CPU above which figures are not reliable."""


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m tests.bench")
    options.add_argument(
        "measures", nargs="*", metavar="MEASURE", help=", ".join([QUICK, *MEASURES, *ALONE])
    )
    options.add_argument("--pairs", type=int, help="repeat each measurement this often")
    options.add_argument("--image", help="the trainer image (default: the one of this checkout)")
    options.add_argument(
        "--against", type=Path, help="compare with an earlier run: its bench.json, or history.jsonl"
    )
    given = options.parse_args()
    quick = QUICK in given.measures
    measures = [name for name in given.measures if name != QUICK] or [*MEASURES]
    every = {**MEASURES, **ALONE}
    unknown = [name for name in measures if name not in every]
    if unknown:
        options.error(f"no measure {', '.join(unknown)}; there are: {QUICK}, {', '.join(every)}")
    try:
        before = read_json(given.against) if given.against else None
    except (OSError, ValueError) as error:
        options.error(f"--against {given.against}: {error}")
    image = given.image or image_tag("cpu")
    if not image_present(this_host(), image):
        options.error(f"{image} is not built; `make image` builds it")
    console = Console(width=None if sys.stdout.isatty() else 132)
    with _bench(image, given.pairs, lambda line: console.print(line, style="dim"), quick) as bench:
        try:
            facts = machine(bench)
            _warn_if_busy(console, facts["cpus"])
            results = [result for name in measures for result in every[name](bench)]
        except BenchError as error:
            console.print(f"no figures: {error}", style="red", markup=False)
            return 4
    BUILD.mkdir(parents=True, exist_ok=True)
    write_json(results, facts, BUILD)
    _draw(results, facts, console, quick)
    for result in results:
        if isinstance(result, Skipped):
            console.print(f"skipped {result.title}: {result.reason}")
    print_table(results, console)
    if before is not None:
        print_changes(results, facts, before, console)
    missed = (isinstance(one, Measured) and one.verdict == "missed" for one in results)
    return int(any(missed))


def _draw(
    results: Sequence[Result], facts: dict[str, object], console: Console, quick: bool
) -> None:
    # matplotlib is slow to import, and must not be in memory while something is measured.
    from tests.bench.picture import draw

    written = ["bench.json"]
    compared = [one for one in results if not one.key.startswith("growth_")]
    if compared:
        draw(compared, facts, BUILD / "bench.png")
        written.append("bench.png")
    if len(compared) < len(results):
        growth.draw(results, BUILD / "growth.png", quick=quick)
        written.append("growth.png")
    console.print(f"written: {BUILD.relative_to(BUILD.parents[1])}/ {', '.join(written)}")


@contextlib.contextmanager
def _bench(
    image: str, pairs: int | None, say: Callable[[str], None], quick: bool
) -> Iterator[Bench]:
    """Yields a bench with a unique name; everything that it started is removed at the end."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    name = f"bench-{secrets.token_hex(4)}"
    with tempfile.TemporaryDirectory(prefix="cluster-kit-bench-") as scratch:
        try:
            yield Bench(name, image, Path(scratch), pairs, say, quick)
        finally:
            remove_all(name)


def _warn_if_busy(console: Console, cpus: int) -> None:
    if load() > BUSY * cpus:
        console.print(
            f"this machine is busy (load {load():.1f} on {cpus} CPUs): take the figures as rough",
            style="yellow",
        )


if __name__ == "__main__":
    sys.exit(main())
