"""The verb that breaks a cluster on purpose, and judges what became of it."""

from __future__ import annotations

import contextlib
import secrets
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from cluster_kit.cli import options
from cluster_kit.cli.app import app, current_host, err, out, print_json, say, short
from cluster_kit.cli.ending import print_metrics
from cluster_kit.cli.requested import requested
from cluster_kit.drill import picture, result, scenario_file
from cluster_kit.drill.plan import random_scenario
from cluster_kit.drill.result import Drill
from cluster_kit.drill.run import drill as run_drill
from cluster_kit.errors import DrillFailed, UsageError
from cluster_kit.run.request import Request
from cluster_kit.show.view import make_view
from cluster_kit.util import stdio
from cluster_kit.util.clock import duration
from cluster_kit.util.kit_files import extra
from cluster_kit.workspace import here

ScenarioFile = Annotated[
    str,
    typer.Argument(
        help="A scenario's path or its name in compose/drills/. Default: the manifest's scenario."
    ),
]
Seed = Annotated[
    int | None, typer.Option("--seed", help="Repeat the random choices of an earlier drill.")
]
Faults = Annotated[
    int | None,
    typer.Option("--faults", min=1, help="Number of random faults, instead of a scenario."),
]
SEEDS = 10**6
PICTURE = "drill.png"


@app.command()
@requested
def drill(
    request: Request,
    *,
    scenario: ScenarioFile = "",
    seed: Seed = None,
    faults: Faults = None,
    json_: options.Json = False,
) -> None:
    """Run a cluster, break its tasks as a scenario says, and judge the result."""
    if scenario and faults is not None:
        raise UsageError(f"--faults {faults} with the scenario {scenario}", "give one of them")
    stdio.outlive_readers()
    workspace = here()
    if faults is None:
        reference = scenario or Path(request.manifest).stem
        written = scenario_file.load(
            scenario_file.find(reference, workspace.manifests / scenario_file.FOLDER)
        )
        seed = written.scenario.seed if seed is None else seed
    number = secrets.randbelow(SEEDS) if seed is None else seed
    view = make_view(err)
    with contextlib.closing(view):
        done = run_drill(
            current_host(),
            request,
            lambda cluster: (
                random_scenario(cluster, number, faults) if faults is not None else written
            ),
            number,
            workspace,
            view,
        )
    drawn = done.lanes is not None and picture.draw(
        done.lanes, _title(done), Path(done.outcome.run) / PICTURE
    )
    if json_:
        print_json(done.facts())
    else:
        _print(done, drawn)
    raise typer.Exit(0 if done.passed else DrillFailed.exit_code)


def _title(done: Drill) -> str:
    passed = "passed" if done.passed else "not passed"
    return f"{done.outcome.cluster}, {Path(done.scenario).name}, seed {done.seed}: {passed}"


def _print(done: Drill, drawn: bool) -> None:
    """Print the faults, how the run ended, and what was not as expected."""
    outcome = done.outcome
    out.print(result.table(done.results))
    ended = "success" if outcome.success else f"failed ({outcome.reason})"
    say(f"the run: {ended} after {duration(outcome.timings_s['total'])}", to=out)
    print_metrics(outcome)
    if done.passed:
        out.print(Text.assemble(("passed", "bold green"), ": all is as expected"))
    else:
        out.print(Text.assemble(("not passed", "bold red"), ":"))
        for miss in done.misses:
            say(f"  {miss}", to=out)
    say(f"  seed {done.seed}; everything is in {short(Path(outcome.run))}, drill.json too", to=out)
    if drawn:
        say(f"  the picture of it: {short(Path(outcome.run) / PICTURE)}", to=out)
    elif done.lanes is not None:
        how = extra("compare", "drill")
        say(f"  no picture: matplotlib is not installed; {how}", to=out)
