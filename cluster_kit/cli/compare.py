"""The verb that compares the ways of training."""

from __future__ import annotations

import os
from typing import Annotated, Literal

import typer
from rich.table import Table

from cluster_kit.cli import manifest_options
from cluster_kit.cli.app import app, current_host, err, out, print_json, say
from cluster_kit.cli.manifest_options import chosen
from cluster_kit.compare import measure, picture
from cluster_kit.compare.measure import (
    SCENARIOS,
    VARIANTS,
    Length,
    Result,
    Scenario,
    Variant,
    number,
    plan_runs,
    run_all,
    write_json,
)
from cluster_kit.compare.speedup import (
    Machines,
    Speed,
    facts,
    machines,
    measure_all,
    speedups,
)
from cluster_kit.errors import Interrupted, TrainingFailed
from cluster_kit.machine.host_facts import gather
from cluster_kit.predict.question import counts as counts_of
from cluster_kit.roles import WORKER
from cluster_kit.show.view import make_view
from cluster_kit.util import stdio
from cluster_kit.util.paths import extra
from cluster_kit.util.terminal import counted
from cluster_kit.workspace import here

Only = Annotated[
    list[str] | None,
    typer.Option(
        "--only", help=f"Only these ways of training: {', '.join(v.key for v in VARIANTS)}."
    ),
]
In = Annotated[
    list[str] | None,
    typer.Option(
        "--scenario", help=f"Only these scenarios: {', '.join(s.key for s in SCENARIOS)}."
    ),
]
Steps = Annotated[
    int,
    typer.Option("--steps", min=2, help="Updates of 32 images per epoch (half as many if sync)."),
]
Epochs = Annotated[int, typer.Option("--epochs", min=2, help="Epochs, a checkpoint after each.")]
Accuracy = Annotated[
    float, typer.Option("--accuracy", min=0.1, max=1.0, help="Validation accuracy to be reached.")
]


@app.command()
def compare(
    only: Only = None,
    scenario: In = None,
    steps: Steps = 40,
    epochs: Epochs = 6,
    accuracy: Accuracy = 0.95,
    json_: manifest_options.Json = False,
) -> None:
    """Train one model in every way: speed, time to an accuracy, staleness, traffic.

    It runs the kit's own programs. Two of your own runs: `cluster-kit runs diff FIRST SECOND`.
    """
    stdio.outlive_readers()
    ways = tuple(chosen(VARIANTS, only, "--only", _key))
    scenarios = tuple(chosen(SCENARIOS, scenario, "--scenario", _key))
    cpus, length, workspace = float(os.cpu_count() or 1), Length(steps - steps % 2, epochs), here()
    runs = plan_runs(ways, scenarios, length, cpus)
    results: list[Result] = []
    try:
        for number, done in enumerate(
            run_all(current_host(), runs, workspace, lambda: make_view(err), accuracy), 1
        ):
            results.append(done)
            say(f"{number}/{len(runs)} {done.run.key}: {_summary(done)}")
    except Interrupted as interrupted:
        if not results:  # an earlier comparison's stay
            raise
        say(interrupted.message)
    facts = measure.facts(results, accuracy, length, cpus)
    folder = workspace.root / "build" / "compare"
    write_json(facts, folder / "compare.json")
    if json_:
        print_json(facts)
    else:
        for scenario_table in measure.tables(results, accuracy):
            out.print(scenario_table)
        say(
            f"{length.images():,} images in each run, {cpus:g} CPUs here; seconds from the first"
            " step; bytes received and sent by all containers of a role",
            to=out,
        )
    drawing = folder / "compare.png"
    if not (drawn := picture.draw(results, accuracy, drawing)):
        drawing.unlink(missing_ok=True)  # it shows an earlier comparison
    say(f"everything is in {folder}{'' if drawn else f' ({_no_picture(results)})'}")
    if len(results) < len(runs):
        raise typer.Exit(Interrupted.exit_code)
    if any(done.failed for done in results):
        raise typer.Exit(TrainingFailed.exit_code)


def _key(choice: Variant | Scenario) -> tuple[str]:
    return (choice.key,)


def _no_picture(results: list[Result]) -> str:
    if not any(done.measured for done in results):
        return "no picture: nothing was measured"
    return f"no picture: matplotlib is not installed; {extra('compare', 'compare')}"


def _summary(done: Result) -> str:
    """A result in a few words."""
    if done.measured is None:
        return f"FAILED, {done.failed}" if done.failed else f"left out, {done.run.skipped}"
    return f"{measure.number(done.measured.images_per_s, 0)} images/s"


Workers = Annotated[
    list[str] | None,
    typer.Option(
        "--workers", help="Counts of workers: 2, or 1,2,3; can be repeated. Default: 1,2,3,4."
    ),
]
MOST_WORKERS = 64
SpeedupSteps = Annotated[
    int, typer.Option("--steps", min=2, help="Number of steps of each replica.")
]
Update = Annotated[
    Literal["async", "sync"],
    typer.Option("--update", help="Whether gradients are applied asynchronously or synchronously."),
]


@app.command()
def speedup(
    workers: Workers = None,
    steps: SpeedupSteps = 30,
    update: Update = "async",
    json_: manifest_options.Json = False,
) -> None:
    """Train a detector on emulated machines with 1 to 4 workers, and compare their speed.

    It runs the kit's own program. How fast yours is with more workers: `cluster-kit predict RUN`.
    """
    stdio.outlive_readers()
    counts, workspace = (
        counts_of(",".join(workers or ["1,2,3,4"]), "--workers", MOST_WORKERS),
        here(),
    )
    host = gather(current_host(), current_host().engine_or_none())
    each = machines(max(counts), host.cpus, host.memory / 2**30)
    speeds: list[Speed] = []
    try:
        for speed in measure_all(
            current_host(), counts, each, steps, update, workspace, lambda: make_view(err)
        ):
            speeds.append(speed)
            say(_speedup_summary(speed))
    except Interrupted as interrupted:
        if not speeds:  # an earlier measurement's stay
            raise
        say(interrupted.message)
    result = facts(speeds, each, update)
    file = workspace.root / "build" / "speedup" / "speedup.json"
    write_json(result, file)
    if json_:
        print_json(result)
    else:
        out.print(_table(speeds))
        say(_machines(each), to=out)
    say(f"the same as JSON: {file}")
    if len(speeds) < len(counts):
        raise typer.Exit(Interrupted.exit_code)
    if any(speed.failed for speed in speeds):
        raise typer.Exit(TrainingFailed.exit_code)


def _speedup_summary(speed: Speed) -> str:
    workers = counted(speed.workers, WORKER.name)
    result = f"FAILED, {speed.failed}" if speed.failed else "too few steps to tell its speed"
    if speed.images_per_s is not None:
        result = f"{speed.images_per_s} images/s"
    return f"{workers}: {result}"


def _table(speeds: list[Speed]) -> Table:
    table = Table(pad_edge=False)
    for heading in ("workers", "with the master", "images/s", "updates/s", "speed-up", "staleness"):
        table.add_column(heading, justify="right")
    for speed, ratio in zip(speeds, speedups(speeds), strict=True):
        table.add_row(
            str(speed.workers),
            str(speed.workers + 1),
            number(speed.images_per_s, 1),
            number(speed.updates_per_s, 2),
            number(ratio, 2),
            number(speed.staleness_mean, 2),
        )
    return table


def _machines(each: Machines) -> str:
    """A line that describes the emulated machines."""
    size = ", ".join(f"{key} {value}" for key, value in each.limits.items())
    if each.scale == 1:
        return f"whole machines: {size}"
    return f"each machine at {each.scale:.1%} of its CPUs and bandwidth: {size}"
