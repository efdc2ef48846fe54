"""`make predict-here`: trains on emulated machines, and compares their speed with predictions.

python3 -m tests.predict.here [NAME…] [--again] [--results]

Each cell is one run of `train.py` on containers with limits of CPU and bandwidth. The runs of
1 + 1 and 2 + 1 calibrate; all others are predicted from them. Results are kept in
build/predict-here/, one file for each cell, so that it goes on where it was stopped. NAME is the
beginning of a cell's name (`async-ps-fat`). `--results` only writes docs/predict-here.json from the
results that are there.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from cluster_kit.cli.predict import figures_of_run
from cluster_kit.errors import Interrupted, KitError
from cluster_kit.predict.measure import profile_of
from cluster_kit.run.launch import launch
from cluster_kit.run.request import Request
from cluster_kit.show.view import QuietView
from cluster_kit.this_host import this_host
from cluster_kit.workspace import RunDirectory, Workspace
from tests.make import ROOT
from tests.predict.here.compared import RESULTS, Cell, compared, figures_from

BUILD = ROOT / "build" / "predict-here"
MANIFEST = Path(__file__).with_name("cluster.toml")
WAYS, MODELS = ("async-ps", "sync-ps", "ring"), ("small", "fat")
BATCH = {"small": 16384, "fat": 6144}
CPUS = {"chief": 0.4, "worker": 0.1, "ps": 0.4}
"""Limits; ps and chief use much less. A step of a worker is long against the 100 ms for which a
limit counts, so that it is as much longer as its CPU is slower."""
BASE = 50
SECONDS, LEAST_STEPS, MOST_STEPS, FIRST_STEPS = 24.0, 12, 40, 24
STRAGGLER = 0.4
"""A worker's part of the others' CPUs: as 0.2 CPU among workers with 0.5."""
STRAGGLER_STEPS = 2.5


def cells() -> Iterator[Cell]:
    """Yields all cells, those that calibrate first."""
    for model in reversed(MODELS):
        for way in WAYS:
            if way == "ring":
                yield Cell(way, model, 1, 0, BASE, calibrates=True)
                yield Cell(way, model, 2, 0, BASE, calibrates=True)
                yield Cell(way, model, 2, 0, BASE // 2, calibrates=True)
                places: tuple[tuple[int, int], ...] = ((4, 0), (8, 0))
            else:
                yield Cell(way, model, 1, 1, BASE, calibrates=True)
                yield Cell(way, model, 2, 1, BASE, calibrates=True)
                yield Cell(way, model, 1, 1, BASE // 2, calibrates=True)
                places = (4, 1), (4, 2), (8, 2), (8, 4)
            for workers, ps in places:
                yield Cell(way, model, workers, ps, BASE)
            ps = 0 if way == "ring" else 2
            yield Cell(way, model, 4, ps, 20)
            yield Cell(way, model, 4, ps, 100)
            yield Cell(way, model, 4, ps, BASE, straggler=STRAGGLER)


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m tests.predict.here")
    options.add_argument("names", nargs="*", metavar="NAME", help="the beginning of cells' names")
    options.add_argument("--again", action="store_true", help="also cells that have a result")
    options.add_argument("--results", action="store_true", help="run nothing")
    given = options.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 132)
    for cell in cells():
        named = not given.names or any(cell.name.startswith(one) for one in given.names)
        if given.results or not named or (_file(cell).exists() and not given.again):
            continue
        try:
            _run(cell, console)
        except KitError as error:
            console.print(f"{cell.name}: {error.message}", style="red")
        except KeyboardInterrupt:
            return 130
    results = {cell.name: _saved(cell) for cell in cells() if _file(cell).exists()}
    RESULTS.write_text(json.dumps(compared(results), indent=1) + "\n", encoding="utf-8")
    console.print(f"written: {RESULTS.relative_to(ROOT)}; `make docs` makes the tables")
    return 0


def _file(cell: Cell) -> Path:
    return BUILD / f"{cell.name}.json"


def _saved(cell: Cell) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(_file(cell).read_text(encoding="utf-8"))
    return facts


def _run(cell: Cell, console: Console) -> None:
    steps = _steps(cell)
    before, began = os.getloadavg()[0], time.monotonic()
    host = this_host()
    view = QuietView(console)
    host.interrupts.interrupt_once()
    outcome = launch(
        host, Request(str(MANIFEST), overrides(cell, steps)), Workspace(ROOT), view,
        keep=False, resume=False,
    )  # fmt: skip
    if outcome.exit_code == Interrupted.exit_code:
        raise KeyboardInterrupt
    figures = figures_of_run(RunDirectory(Path(outcome.run)), cell.way, BATCH[cell.model])
    facts = {
        "cell": asdict(cell),
        "when": time.strftime("%Y-%m-%d %H:%M:%S"),
        "steps": steps,
        "took_s": round(time.monotonic() - began, 1),
        "load": [round(before, 2), round(os.getloadavg()[0], 2)],
        "figures": asdict(figures),
    }
    BUILD.mkdir(parents=True, exist_ok=True)
    _file(cell).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    step = figures.workers * figures.seconds / figures.steps
    console.print(
        f"{cell.name}: {figures.images_per_s:,.0f} images/s, {step:.2f} s a step, "
        f"{figures.steps:.0f} steps in {figures.seconds:.0f} s; took {facts['took_s']} s, "
        f"load {facts['load'][1]}"
    )


def _steps(cell: Cell) -> int:
    """Steps of each worker that take about SECONDS, by the prediction."""
    if cell.calibrates:
        return FIRST_STEPS
    calibrating = [
        figures_from(_saved(one)["figures"])
        for one in cells()
        if one.calibrates and (one.way, one.model) == (cell.way, cell.model) and _file(one).exists()
    ]
    if not calibrating:
        return LEAST_STEPS
    seconds = cell.step_s(profile_of(calibrating))
    steps = max(LEAST_STEPS, min(MOST_STEPS, round(SECONDS / seconds)))
    # A slower worker is ready later, too, and only the time in which all of them train counts.
    return round(steps * STRAGGLER_STEPS) if cell.straggler and cell.ps else steps


def overrides(cell: Cell, steps: int) -> dict[str, Any]:
    """The manifest's keys of a cell."""
    shaped = f"{cell.mbit}mbit"
    roles: dict[str, Mapping[str, Any]] = {
        "worker": {"cpus": CPUS["worker"], "bandwidth": shaped},
    }
    ring = cell.way == "ring"
    if not ring:
        roles |= {
            "ps": {"cpus": CPUS["ps"], "bandwidth": shaped},
            "chief": {"cpus": CPUS["chief"]},
        }
    keys: dict[str, Any] = {
        "name": "predict-here",
        "chief": 0 if ring else 1,
        "worker": cell.workers,
        "ps": cell.ps,
        "style": "all-tasks" if ring else "coordinator",
        "role": roles,
        "args": [
            *("--way", cell.way, "--model", cell.model),
            *("--batch", str(BATCH[cell.model]), "--steps", str(steps)),
        ],
    }
    if cell.straggler is not None:
        keys["task"] = {"worker-0": {"cpus": round(CPUS["worker"] * cell.straggler, 3)}}
    return keys


if __name__ == "__main__":
    sys.exit(main())
