"""The verb new, which writes the files of a new cluster."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from cluster_kit.cli import options
from cluster_kit.cli.app import app, out, print_json, say
from cluster_kit.errors import UsageError
from cluster_kit.programs import starter
from cluster_kit.util.nearest import proposal
from cluster_kit.util.own_files import CLONE
from cluster_kit.workspace import here


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="The new cluster's name: a DNS label.")],
    style: Annotated[
        str,
        typer.Option(
            "--style",
            help="Parameter servers under a chief, or all-reduce.",
            metavar="[coordinator|all-tasks]",
        ),
    ] = "coordinator",
    json_: options.Json = False,
) -> None:
    """Write a commented manifest and a starter program that trains at once."""
    known_style = next((known for known in starter.PROGRAM_BY_STYLE if known == style), None)
    if known_style is None:
        raise UsageError(
            f"--style {style!r} (make: STYLE) is not a style of a new cluster",
            proposal(style, list(starter.PROGRAM_BY_STYLE)),
        )
    created = starter.create(name, known_style, here())
    files = {"manifest": str(created.manifest), "program": str(created.program)}
    if json_:
        print_json(files)
        return
    manifest, program = os.path.relpath(created.manifest), os.path.relpath(created.program)
    width = max(len(manifest), len(program))
    say(f"{manifest:<{width}}  the cluster: tasks, limits, deadlines", to=out)
    say(f"{program:<{width}}  the program: yours to change", to=out)
    make = f"`make cluster CLUSTER={name}` or " if CLONE else ""
    say(f"run it with {make}`cluster-kit up {name}`", to=out)
