"""The verb that breaks every role of every system in every way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from cluster_kit.cli import options
from cluster_kit.cli.app import app, current_host, err, print_json, say, short
from cluster_kit.drill.matrix_cells import BREAKS, PLACES, SYSTEMS, Cell, System, line
from cluster_kit.drill.matrix_run import ALL, Store, cells_of, run_all
from cluster_kit.errors import DrillFailed, UsageError
from cluster_kit.show.view import make_view
from cluster_kit.util import stdio
from cluster_kit.util.nearest import proposal
from cluster_kit.workspace import here

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
    json_: options.Json = False,
) -> None:
    """Break each role of five systems in nine ways; continue an interrupted matrix where it was."""
    stdio.outlive_readers()
    workspace = here()
    by_name = {system.name: system for system in SYSTEMS}
    systems = [by_name.get(name, System(name)) for name in manifests or by_name]
    cells = _chosen(cells_of(systems, workspace), role, "--role", lambda cell: (cell.role,))
    cells = _chosen(cells, fault, "--fault", lambda c: (str(c.fault), c.fault.kind))
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


def _end(found: Sequence[dict[str, Any]], file: str, json_: bool) -> None:
    if json_:
        print_json(found)
    missed = [facts for facts in found if facts["misses"]]
    for facts in missed:
        say(line(facts))
    say(f"{len(found) - len(missed)} of {len(found)} are as they should be; {file} has all")
    raise typer.Exit(DrillFailed.exit_code if missed else 0)


Of = Callable[[Cell], Sequence[str]]


def _chosen(cells: Sequence[Cell], words: list[str] | None, option: str, of: Of) -> list[Cell]:
    """Those that one of the words names, all if there are none; raises UsageError."""
    known = list(dict.fromkeys(name for cell in cells for name in of(cell)))
    for word in words or []:
        if word not in known:
            raise UsageError(f"{option} {word}: not found", proposal(word, known))
    return [cell for cell in cells if not words or set(words) & set(of(cell))]
