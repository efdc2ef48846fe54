"""The verb that measures what further workers bring."""

from __future__ import annotations

from typing import Annotated, Literal

import typer
from rich.table import Table

from cluster_kit.cli import options
from cluster_kit.cli.app import app, current_host, err, out, print_json, say
from cluster_kit.compare.measure import number, write_json
from cluster_kit.compare.speedup import (
    Machines,
    Speed,
    facts,
    machines,
    measure_all,
    speedups,
)
from cluster_kit.errors import Interrupted, TrainingFailed
from cluster_kit.machine.gather import gather
from cluster_kit.show.view import make_view
from cluster_kit.util import stdio
from cluster_kit.workspace import here

Workers = Annotated[
    list[int] | None,
    typer.Option(
        "--workers", min=1, help="A number of workers; can be repeated. Default: 1, 2, 3 and 4."
    ),
]
Steps = Annotated[int, typer.Option("--steps", min=2, help="Number of steps of each replica.")]
Update = Annotated[
    Literal["async", "sync"],
    typer.Option("--update", help="Whether gradients are applied asynchronously or synchronously."),
]


@app.command()
def speedup(
    workers: Workers = None,
    steps: Steps = 30,
    update: Update = "async",
    json_: options.Json = False,
) -> None:
    """Train a detector on emulated machines with 1 to 4 workers, and compare their speed."""
    stdio.outlive_readers()
    counts, workspace = sorted(set(workers or (1, 2, 3, 4))), here()
    host = gather(current_host(), current_host().engine_or_none())
    each = machines(max(counts), host.cpus, host.memory / 2**30)
    speeds: list[Speed] = []
    try:
        for speed in measure_all(
            current_host(), counts, each, steps, update, workspace, lambda: make_view(err)
        ):
            speeds.append(speed)
            say(f"{speed.workers} workers: {_summary(speed)}")
    except Interrupted as interrupted:
        say(interrupted.message)
    found = facts(speeds, each, update)
    write_json(found, workspace.root / "build" / "speedup" / "speedup.json")
    if json_:
        print_json(found)
    else:
        out.print(_table(speeds))
        say(_machines(each), to=out)
    if len(speeds) < len(counts):
        raise typer.Exit(Interrupted.exit_code)
    if any(speed.failed for speed in speeds):
        raise typer.Exit(TrainingFailed.exit_code)


def _summary(speed: Speed) -> str:
    return f"FAILED, {speed.failed}" if speed.failed else f"{speed.images_per_s} images/s"


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
    """Which machines they were."""
    size = ", ".join(f"{key} {value}" for key, value in each.limits.items())
    if each.scale == 1:
        return f"whole machines: {size}"
    return f"each machine at {each.scale:.1%} of its CPUs and bandwidth: {size}"
