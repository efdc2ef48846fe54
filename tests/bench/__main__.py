"""`make bench`: compares the kit with the plain way, prints a table, writes JSON, and draws a PNG.

python -m tests.bench [MEASURE…] [--pairs N] [--image TAG]; the exit code is 1 if a goal is missed.
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
from tests.bench import idle_server, planning, serving, stop, throughput, watching, whole_job
from tests.bench.bench import Bench, BenchError, load, remove_all
from tests.bench.machine import machine
from tests.bench.measured import Measured, Result, Skipped
from tests.bench.report import print_table, write_json

MEASURES: dict[str, Callable[[Bench], Sequence[Result]]] = {
    "whole-job": whole_job.measure,
    "server": idle_server.measure,
    "stop": stop.measure,
    "planning": planning.measure,
    "watching": watching.measure,
    "serve": serving.measure,
    "throughput": throughput.measure,
}
BUILD = Path(__file__).resolve().parents[2] / "build" / "bench"
BUSY = 0.35
"""Load per CPU above which figures are not reliable."""


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m tests.bench")
    options.add_argument("measures", nargs="*", metavar="MEASURE", help=", ".join(MEASURES))
    options.add_argument("--pairs", type=int, help="repeat each measurement this often")
    options.add_argument("--image", help="the trainer image (default: the one of this checkout)")
    given = options.parse_args()
    unknown = [name for name in given.measures if name not in MEASURES]
    if unknown:
        options.error(f"no measure {', '.join(unknown)}; there are: {', '.join(MEASURES)}")
    image = given.image or image_tag("cpu")
    if not image_present(this_host(), image):
        options.error(f"{image} is not built; `make image` builds it")
    console = Console(width=None if sys.stdout.isatty() else 132)
    with _bench(image, given.pairs, lambda line: console.print(line, style="dim")) as bench:
        try:
            facts = machine(bench)
            _warn_if_busy(console, facts["cpus"])
            results = [
                result for name in given.measures or MEASURES for result in MEASURES[name](bench)
            ]
        except BenchError as error:
            console.print(f"no figures: {error}", style="red", markup=False)
            return 4
    BUILD.mkdir(parents=True, exist_ok=True)
    write_json(results, facts, BUILD / "bench.json")
    _draw(results, facts, console)
    for result in results:
        if isinstance(result, Skipped):
            console.print(f"skipped {result.title}: {result.reason}")
    print_table(results, console)
    return int(any(isinstance(result, Measured) and not result.met for result in results))


def _draw(results: Sequence[Result], facts: dict[str, object], console: Console) -> None:
    # matplotlib is slow to import, and must not be in memory while something is measured.
    from tests.bench.picture import draw

    draw(results, facts, BUILD / "bench.png")
    console.print(f"written: {BUILD.relative_to(BUILD.parents[1])}/ bench.json, bench.png")


@contextlib.contextmanager
def _bench(image: str, pairs: int | None, say: Callable[[str], None]) -> Iterator[Bench]:
    """Yields a bench with a unique name; everything that it started is removed at the end."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    name = f"bench-{secrets.token_hex(4)}"
    with tempfile.TemporaryDirectory(prefix="cluster-kit-bench-") as scratch:
        try:
            yield Bench(name, image, Path(scratch), pairs, say)
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
