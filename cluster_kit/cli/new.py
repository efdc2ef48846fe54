"""The verb new, which writes the files of a new cluster; `init` is another name for it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from cluster_kit.cli import manifest_options
from cluster_kit.cli.app import app, out, print_json, say
from cluster_kit.cli.manifest_options import WithBareOptions, one_of
from cluster_kit.errors import UsageError
from cluster_kit.manifest.command_line import Caller
from cluster_kit.manifest.field_types import near_name
from cluster_kit.platforms.platform import json_schema
from cluster_kit.project import starter
from cluster_kit.project.starter import (
    ENGINES,
    SYSTEMS,
    Addition,
    ci_files,
    dev_container,
    make_part,
    source,
)
from cluster_kit.roles import Style
from cluster_kit.util.nearest import proposal
from cluster_kit.util.paths import CLONE
from cluster_kit.workspace import Workspace, here, write_new


@app.command("init", help="The same as `new`.", cls=WithBareOptions)
@app.command(cls=WithBareOptions)
def new(
    name: Annotated[
        str,
        typer.Argument(help="The new cluster's name, a DNS label. Default: the directory's name."),
    ] = "",
    style: Annotated[
        str,
        typer.Option(
            "--style",
            help="How it trains: with parameter servers under a chief, or by all-reduce.",
            metavar="[coordinator|all-tasks]",
            autocompletion=one_of(["coordinator", "all-tasks"]),
        ),
    ] = "coordinator",
    make: Annotated[
        bool,
        typer.Option("--make", help="Also write cluster-kit.mk, to be included by your Makefile."),
    ] = False,
    ci: Annotated[
        str,
        typer.Option(
            "--ci",
            help="Also write the files that run it in CI.",
            metavar=f"[{'|'.join(SYSTEMS)}]",
            autocompletion=one_of(SYSTEMS),
        ),
    ] = "",
    devcontainer: Annotated[
        str,
        typer.Option(
            "--devcontainer",
            help="Also write a dev container; with =inside it has a Docker engine of its own.",
            metavar="[inside]",
        ),
    ] = "",
    kit: Annotated[
        str,
        typer.Option(
            "--kit",
            help="What CI or the dev container installs the kit from: a wheel's path or a pip "
            "requirement.",
        ),
    ] = "",
    json_: manifest_options.Json = False,
) -> None:
    """Write a commented manifest and a starter program that trains at once.

    If the cluster exists already, `--make`, `--ci` and `--devcontainer` write only their own files.
    """
    if kit and not (ci or devcontainer):
        raise UsageError(
            "--kit without --ci", f"name the CI: {' or '.join(SYSTEMS)}; or add --devcontainer"
        )
    known_style, workspace = _known_style(style), _here()
    name = name or near_name(workspace.root.resolve().name)
    starter.check_name(name)
    added = tuple(_additions(name, workspace, make=make, ci=ci, dev=devcontainer, kit=kit))
    files = {path: content for addition in added for path, content in addition.files.items()}
    manifest, created = starter.manifest_of(name, workspace), None
    if added and manifest.is_file():
        write_new(files)
    else:
        created = starter.create(name, known_style, workspace, files)
    if json_:
        facts = {
            "manifest": created and str(created.manifest),
            "program": created and str(created.program),
        }
        print_json({**facts, "beside": [str(path) for path in files]})
    else:
        _tell(name, manifest, created, added)


def _known_style(style: str) -> Style:
    """The style of this name; raises UsageError."""
    for known in starter.PROGRAM_BY_STYLE:
        if known == style:
            return known
    raise UsageError(
        f"{Caller.of(os.environ).written('style')} {style!r} is not a style of a new cluster",
        proposal(style, list(starter.PROGRAM_BY_STYLE)),
    )


def _here() -> Workspace:
    """The current directory, even if it is empty; inside the kit's clone, the clone's root."""
    current = Path.cwd()
    inside = CLONE is not None and current.is_relative_to(CLONE)
    return here() if inside else Workspace(current)


def _additions(
    name: str, workspace: Workspace, *, make: bool, ci: str, dev: str, kit: str
) -> Iterator[Addition]:
    if make:
        yield make_part(name, workspace)
    if ci:
        if ci not in SYSTEMS:
            raise UsageError(f"--ci {ci!r} is not a CI that the kit knows", proposal(ci, SYSTEMS))
        yield ci_files(ci, name, workspace, source(kit))
    if dev:
        if dev not in ENGINES:
            raise UsageError(
                f"--devcontainer={dev!r} is not an engine of a dev container",
                proposal(dev, ENGINES),
            )
        yield dev_container(dev, workspace, source(kit))


def _tell(
    name: str, manifest: Path, created: starter.Starter | None, added: Sequence[Addition]
) -> None:
    """Print each new file with its purpose, how to run a new cluster, and the remaining steps."""
    about = {path: text for addition in added for path, text in addition.about.items()}
    if created:
        about = {
            created.manifest: "the cluster: tasks, limits, deadlines",
            created.program: "the program: yours to change",
            **about,
        }
    else:
        say(f"{os.path.relpath(manifest)} exists already, and is left as it is", to=out)
    shown = {os.path.relpath(path): description for path, description in about.items()}
    width = max(map(len, shown), default=0)
    for path, description in shown.items():
        say(f"{path:<{width}}  {description}", to=out)
    if created:
        in_clone = manifest.parents[1].resolve() == CLONE  # which has a Makefile
        run = f"`make cluster CLUSTER={name}` or " if in_clone else ""
        say(f"run it with {run}`cluster-kit up {name}`", to=out)
    for line in (line for addition in added for line in addition.next):
        say(line, to=out)


@app.command()
def schema() -> None:
    """Print the manifest's JSON Schema, for editors."""
    print_json(json_schema())
