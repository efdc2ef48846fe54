"""The verbs drill and matrix: they break a cluster on purpose, and judge the result."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from cluster_kit.cli import manifest_options
from cluster_kit.cli.app import app, current_host, err, out, print_json, say, short
from cluster_kit.cli.manifest_options import chosen, requested
from cluster_kit.cli.verdict_lines import print_metrics
from cluster_kit.drill import goodput, result, scenario_file, trace
from cluster_kit.drill.fault_plan import random_scenario
from cluster_kit.drill.injector import Scenarios
from cluster_kit.drill.injector import drill as run_drill
from cluster_kit.drill.matrix import (
    ALL,
    BREAKS,
    PLACES,
    SYSTEMS,
    Store,
    System,
    cells_of,
    line,
    run_all,
)
from cluster_kit.drill.result import Drill
from cluster_kit.drill.scenario_file import Written
from cluster_kit.errors import DrillFailed, UsageError
from cluster_kit.manifest.command_line import Caller
from cluster_kit.manifest.load import find
from cluster_kit.run.request import Request
from cluster_kit.show.view import make_view
from cluster_kit.util import stdio
from cluster_kit.util.paths import extra
from cluster_kit.util.terminal import duration
from cluster_kit.workspace import Workspace, here

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
TraceFile = Annotated[
    Path | None,
    typer.Option(
        "--trace",
        metavar="FILE",
        help="Replay a trace of machines that left and came back, instead of a scenario.",
    ),
]
Speedup = Annotated[
    float | None, typer.Option("--speedup", help="Replay the trace so many times as fast.")
]
Preempt = Annotated[
    list[str] | None,
    typer.Option(
        "--preempt",
        help="A role or task whose machines the trace has. Default: the workers that do not lead.",
    ),
]
SEEDS = 10**6
PICTURE = "drill.png"
MOST_SPEEDUP = 1e6


@app.command()
@requested
def drill(
    request: Request,
    *,
    scenario: ScenarioFile = "",
    seed: Seed = None,
    faults: Faults = None,
    trace_file: TraceFile = None,
    speedup: Speedup = None,
    preempt: Preempt = None,
    json_: manifest_options.Json = False,
) -> None:
    """Run a cluster, break its tasks as a scenario says, and judge the result."""
    if scenario and faults is not None:
        raise UsageError(f"--faults {faults} with the scenario {scenario}", "give one of them")
    stdio.outlive_readers()
    workspace = here()
    if trace_file is not None or speedup is not None or preempt:
        _refuse_mixed(trace_file, scenario, faults, seed)
        request, scenario_of = _replay(request, Path(trace_file or ""), speedup, preempt or [])
        seed = 0
    elif faults is None:
        written = scenario_file.load(_scenario(request, scenario, workspace))
        seed = written.scenario.seed if seed is None else seed
        scenario_of = _always(written)
    number = secrets.randbelow(SEEDS) if seed is None else seed
    if faults is not None:
        drawn_faults = faults
        scenario_of = lambda cluster: random_scenario(cluster, number, drawn_faults)  # noqa: E731
    view = make_view(err)
    with contextlib.closing(view):
        done = run_drill(
            current_host(),
            request,
            scenario_of,
            number,
            workspace,
            view,
        )
    drawn = done.lanes is not None and result.draw(
        done.lanes, _title(done), Path(done.outcome.run) / PICTURE
    )
    if json_:
        print_json(done.facts())
    else:
        _print(done, drawn)
    raise typer.Exit(0 if done.passed else DrillFailed.exit_code)


def _always(written: Written) -> Scenarios:
    return lambda _cluster: written


def _refuse_mixed(
    trace_file: Path | None, scenario: str, faults: int | None, seed: int | None
) -> None:
    if trace_file is None:
        raise UsageError("--speedup and --preempt are of a trace", "name one: `--trace FILE.csv`")
    if seed is not None:
        hint = "leave one of them out: nothing is chosen at random"
        raise UsageError(f"--seed {seed} with --trace {trace_file}", hint)
    if scenario or faults is not None:
        other = f"the scenario {scenario}" if scenario else f"--faults {faults}"
        raise UsageError(f"--trace {trace_file} with {other}", "give one of them")


def _replay(
    request: Request, file: Path, speedup: float | None, preempt: Sequence[str]
) -> tuple[Request, Scenarios]:
    """The request, with as many `retries` as the trace may cost, and the trace's scenario."""
    factor = 1.0 if speedup is None else speedup
    if not 0 < factor <= MOST_SPEEDUP:
        raise UsageError(
            f"--speedup {factor:g}: must be more than 0 and at most {MOST_SPEEDUP:g}",
            "1 replays the trace as it was, 60 makes each hour of it a minute",
        )
    loaded = trace.load(file.expanduser())
    if "retries" not in request.overrides:
        request = replace(request, overrides={**request.overrides, "retries": loaded.retries})
    names = [name for words in preempt for name in words.split(",") if name]
    return request, lambda cluster: trace.replayed(loaded, cluster, factor, names)


def _title(done: Drill) -> str:
    passed = "passed" if done.passed else "not passed"
    return f"{done.outcome.cluster}, {Path(done.scenario).name}, seed {done.seed}: {passed}"


def _print(done: Drill, drawn: bool) -> None:
    """Print the faults, how the run ended, and the expectations that failed."""
    outcome = done.outcome
    if done.goodput is None:
        out.print(result.table(done.results))
    else:
        out.print(goodput.table(done.goodput))
        for sentence in goodput.lines(done.goodput):
            say(sentence, to=out)
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
        install_hint = extra("compare", "drill")
        say(f"  no picture: matplotlib is not installed; {install_hint}", to=out)


Manifests = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[MANIFESTS]",
        help=f"Manifests by path or name; the default is {', '.join(s.name for s in SYSTEMS)}.",
    ),
]
Role = Annotated[list[str] | None, typer.Option("--role", help=f"Only these: {', '.join(PLACES)}.")]
OfFault = Annotated[
    list[str] | None,
    typer.Option("--fault", help=f"Only these: {', '.join(map(str, BREAKS))}; or a kind."),
]
Again = Annotated[bool, typer.Option("--again", help="Re-run cells that already have a result.")]


@app.command()
def matrix(
    manifests: Manifests = None,
    role: Role = None,
    fault: OfFault = None,
    again: Again = False,
    json_: manifest_options.Json = False,
) -> None:
    """Break each role of five systems in nine ways; continue a matrix that was interrupted."""
    stdio.outlive_readers()
    workspace = here()
    by_name = {system.name: system for system in SYSTEMS}
    systems = [by_name.get(name, System(name)) for name in manifests or by_name]
    cells = chosen(cells_of(systems, workspace), role, "--role", lambda cell: (cell.role,))
    cells = chosen(cells, fault, "--fault", lambda c: (str(c.fault), c.fault.kind))
    folder = workspace.root / "build" / "drill"
    store = Store(folder)
    pending = [cell for cell in cells if again or not store.has(cell)]
    if len(pending) < len(cells):
        say(f"{len(cells) - len(pending)} of {len(cells)} have a result in {short(folder)}")
    engine = current_host().connect().info()
    for number, judged in enumerate(
        run_all(current_host(), pending, workspace, lambda: make_view(err)), 1
    ):
        store.save(current_host(), judged, engine)
        say(f"{number}/{len(pending)} {line(judged.facts())}")
    store.write_all(cells_of(list(dict.fromkeys((*SYSTEMS, *systems))), workspace))
    _end(store.gather(cells), f"{short(folder)}/{ALL}", json_)


def _end(cells: Sequence[dict[str, Any]], file: str, json_: bool) -> None:
    if json_:
        print_json(cells)
    missed = [facts for facts in cells if facts["misses"]]
    for facts in missed:
        say(line(facts))
    say(f"{len(cells) - len(missed)} of {len(cells)} passed; {file} has all results")
    raise typer.Exit(DrillFailed.exit_code if missed else 0)


def _scenario(request: Request, reference: str, workspace: Workspace) -> Path:
    """The scenario's file; raises UsageError if it or the manifest does not exist, or if the
    manifest has none."""
    folder = workspace.manifests / scenario_file.FOLDER
    name = find(request.manifest, workspace.manifests).stem
    try:
        return scenario_file.find(reference or name, folder)
    except UsageError as error:
        if reference:
            raise
        drawn = "FAULTS=3" if request.caller is Caller.MAKE else "--faults 3"
        raise UsageError(
            f"no scenario for {name}: {short(folder / name)}.toml was not found",
            f"`{drawn}` draws some faults; or write one, or name one: {error.hint}",
        ) from None
