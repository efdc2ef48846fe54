"""`make predict-here`: trains on emulated machines, and compares their speed with predictions.

python3 -m tests.predict.here [NAME…] [--repeats N] [--again] [--again-above LOAD] [--results]

Each cell is `train.py` on containers with limits of CPU and bandwidth. The cells of 1 + 1 and 2 + 1
calibrate; all others are predicted from them. Runs are kept in build/predict-here/, one file for
each cell, so that it goes on where it was stopped: a cell with N runs is not measured again. The
run with the median speed counts. NAME is the beginning of a cell's name (`async-ps-fat`).
`--results` only writes docs/predict-here.json from the runs that are there. A way and model with
fewer cells than there keeps its older results.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from cluster_kit.cli.predict import figures_of_run
from cluster_kit.errors import Interrupted, KitError
from cluster_kit.predict.measure import profile_of
from cluster_kit.predict.profile import Profile
from cluster_kit.run.launch import launch
from cluster_kit.run.request import Request
from cluster_kit.show.view import QuietView
from cluster_kit.this_host import this_host
from cluster_kit.workspace import RunDirectory, Workspace
from tests.make import ROOT
from tests.predict.here.compared import RESULTS, Cell, compared, figures_from, median_run

BUILD = ROOT / "build" / "predict-here"
MANIFEST = Path(__file__).with_name("cluster.toml")
WAYS, MODELS = ("async-ps", "sync-ps", "ring"), ("small", "fat")
BATCH = {"small": 57344, "fat": 6144}
CPUS = {"chief": 0.4, "worker": 0.1, "ps": 0.4}
"""Limits; ps and chief use much less. A step of a worker is long against the 100 ms for which a
limit counts, so that it is as much longer as its CPU is slower."""
BASE = 50
FIRST_STEPS = {"small": 24, "fat": 20}
"""Steps of a run that calibrates: about 25 s of each model."""
SECONDS, LEAST_STEPS, MOST_STEPS = 17.0, 10, 40
STRAGGLER, STRAGGLER_SPEED = 0.2, 2.5
"""A worker with 0.05 CPU among workers with 0.25. Among workers with 0.1 it would have so little
that TensorFlow takes minutes to start, so the others are faster instead."""
STRAGGLER_STEPS = 2.0
"""A slower worker is ready later, and only the time in which all of them train counts."""
START_S = {"async-ps": 12.0, "sync-ps": 12.0, "ring": 34.0}
"""Seconds of a run without its training: an all-reduce imports TensorFlow in each worker."""
STEP_S = {"small": 1.2, "fat": 1.4}
"""About the seconds of a step, before the runs that calibrate tell more."""


def cells() -> list[Cell]:
    """All cells, way by way: those that calibrate first, and both models in turn."""
    return [
        cell
        for way in WAYS
        for both in zip(*(_of(way, m) for m in MODELS), strict=True)
        for cell in both
    ]


def _of(way: str, model: str) -> Iterator[Cell]:
    ring = way == "ring"
    alone, pair = ((1, 0), (2, 0)) if ring else ((1, 1), (2, 1))
    yield Cell(way, model, *alone, BASE, calibrates=True)
    yield Cell(way, model, *pair, BASE, calibrates=True)
    yield Cell(way, model, *(pair if ring else alone), BASE // 2, calibrates=True)
    for workers, ps in ((4, 0), (8, 0)) if ring else ((4, 1), (4, 2), (8, 2), (8, 4)):
        yield Cell(way, model, workers, ps, BASE)
    ps = 0 if ring else 2
    yield Cell(way, model, 4, ps, 20)
    yield Cell(way, model, 4, ps, 100)
    yield Cell(way, model, 4, ps, BASE, straggler=STRAGGLER, speed=STRAGGLER_SPEED)


def missing(runs: Sequence[Mapping[str, Any]], repeats: int, most_load: float, since: str) -> int:
    """How many runs a cell lacks: those before `since` or under more load do not count."""
    good = [run for run in runs if run["when"] >= since and max(run["load"]) <= most_load]
    return max(0, repeats - len(good))


def kept(
    runs: Sequence[Mapping[str, Any]], repeats: int, most_load: float, since: str
) -> list[Mapping[str, Any]]:
    """The runs of a cell after one more came: the newest good ones, others only if these lack."""

    def rank(run: Mapping[str, Any]) -> tuple[bool, str]:
        return (run["when"] >= since and max(run["load"]) <= most_load), run["when"]

    return sorted(sorted(runs, key=rank)[-repeats:], key=lambda run: str(run["when"]))


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m tests.predict.here")
    options.add_argument("names", nargs="*", metavar="NAME", help="the beginning of cells' names")
    options.add_argument("--repeats", type=int, default=1, metavar="N", help="runs of each cell")
    options.add_argument("--again", action="store_true", help="also cells that have their runs")
    options.add_argument(
        "--again-above", type=float, default=float("inf"), metavar="LOAD",
        help="also cells whose runs were made under more load than this",
    )  # fmt: skip
    options.add_argument("--results", action="store_true", help="run nothing")
    given = options.parse_args()
    if given.repeats < 1:
        options.error("--repeats is at least 1")
    console = Console(width=None if sys.stdout.isatty() else 132)
    counts = given.repeats, given.again_above, _now() if given.again else ""
    failed = False
    if not given.results:
        chosen = [
            one for one in cells() if not given.names or one.name.startswith(tuple(given.names))
        ]
        try:
            failed = _measure(chosen, counts, console)
        except KeyboardInterrupt:
            console.print("stopped; the same command goes on here")
            return 130
    results = {cell.name: facts for cell in cells() if (facts := _saved(cell))["runs"]}
    before = json.loads(RESULTS.read_text(encoding="utf-8"))
    whole = json.dumps(together(before, compared(results)), indent=1)
    RESULTS.write_text(whole + "\n", encoding="utf-8")
    console.print(f"written: {RESULTS.relative_to(ROOT)}; `make docs` makes the tables")
    return 1 if failed else 0


def together(before: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """The results of all ways and models: new ones in place of older ones that have fewer cells."""
    rows = {name: len(facts["rows"]) for name, facts in before.items()}
    more = {name: one for name, one in found.items() if len(one["rows"]) >= rows.get(name, 1)}
    names = (f"{way}, {model}" for way in WAYS for model in MODELS)
    return {name: one for name in names if (one := more.get(name) or before.get(name))}


def _measure(chosen: Sequence[Cell], counts: tuple[int, float, str], console: Console) -> bool:
    """Measure what is missing, a run of each cell before the second of any; True if one failed."""
    lacks = {cell: missing(_saved(cell)["runs"], *counts) for cell in chosen}
    left = [cell for turn in range(max(lacks.values(), default=0)) for cell in chosen
            if lacks[cell] > turn]  # fmt: skip
    failed = False
    for number, cell in enumerate(left):
        seconds = sum(takes(one, _profile(one)) for one in left[number:])
        console.print(
            f"{len(left) - number} runs to measure, about {seconds / 60:.0f} minutes: {cell.name}"
        )
        try:
            _run(cell, counts, console)
        except KitError as error:
            failed = True
            console.print(f"{cell.name}: {error.message}", style="red")
    return failed


def _file(cell: Cell) -> Path:
    return BUILD / f"{cell.name}.json"


def _saved(cell: Cell) -> dict[str, Any]:
    """A cell and its runs."""
    try:
        facts: dict[str, Any] = json.loads(_file(cell).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {"cell": asdict(cell), "runs": []}
    return facts


def _now() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S")


def _run(cell: Cell, counts: tuple[int, float, str], console: Console) -> None:
    steps = steps_of(cell, _profile(cell))
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
    run = {
        "when": _now(),
        "steps": steps,
        "took_s": round(time.monotonic() - began, 1),
        "load": [round(before, 2), round(os.getloadavg()[0], 2)],
        "figures": asdict(figures),
    }
    runs = kept([*_saved(cell)["runs"], run], *counts)
    BUILD.mkdir(parents=True, exist_ok=True)
    whole = _file(cell).with_suffix(".new")
    whole.write_text(json.dumps({"cell": asdict(cell), "runs": runs}, indent=1) + "\n", "utf-8")
    whole.replace(_file(cell))
    step = figures.workers * figures.seconds / figures.steps
    console.print(
        f"{cell.name}: {figures.images_per_s:,.0f} images/s, {step:.2f} s a step, "
        f"{figures.steps:.0f} steps in {figures.seconds:.0f} s; took {run['took_s']} s, "
        f"load {max(before, os.getloadavg()[0]):.1f}"
    )


def _profile(cell: Cell) -> Profile | None:
    """The profile of the cell's way and model; None as long as runs that calibrate are missing."""
    same = [one for one in _of(cell.way, cell.model) if one.calibrates]
    runs = [facts["runs"] for one in same if (facts := _saved(one))["runs"]]
    if len(runs) < len(same):
        return None
    return profile_of([figures_from(median_run(one)["figures"]) for one in runs])


def steps_of(cell: Cell, profile: Profile | None) -> int:
    """Steps of each worker that take about SECONDS, by the prediction."""
    if cell.calibrates:
        return FIRST_STEPS[cell.model]
    steps = max(LEAST_STEPS, min(MOST_STEPS, round(SECONDS / _step_s(cell, profile))))
    return round(steps * STRAGGLER_STEPS) if cell.straggler and cell.way == "async-ps" else steps


def takes(cell: Cell, profile: Profile | None) -> float:
    """About the seconds of a run of the cell."""
    return START_S[cell.way] + steps_of(cell, profile) * _step_s(cell, profile)


def _step_s(cell: Cell, profile: Profile | None) -> float:
    return STEP_S[cell.model] if profile is None or cell.calibrates else cell.step_s(profile)


def overrides(cell: Cell, steps: int) -> dict[str, Any]:
    """The manifest's keys of a cell."""
    shaped, cpus = f"{cell.mbit}mbit", round(CPUS["worker"] * cell.speed, 3)
    roles: dict[str, Mapping[str, Any]] = {
        "worker": {"cpus": cpus, "bandwidth": shaped},
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
        keys["task"] = {"worker-0": {"cpus": round(cpus * cell.straggler, 3)}}
    return keys


if __name__ == "__main__":
    sys.exit(main())
