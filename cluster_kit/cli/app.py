"""The typer application, and how it prints: facts on stdout, messages and errors on stderr."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from cluster_kit.errors import KitError, UsageError
from cluster_kit.run.request import USUAL, unnamed
from cluster_kit.util.nearest import proposal
from cluster_kit.util.runner_commands import in_json
from cluster_kit.util.terminal import harmless

PIPED_WIDTH = int(os.environ.get("COLUMNS") or 200)
"""The width of a table that is not printed on a terminal, so that nothing is cut off."""

app = typer.Typer(
    name="cluster-kit",
    help="Local clusters for distributed TensorFlow: one container per task.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
out = Console(highlight=False, width=None if sys.stdout.isatty() else PIPED_WIDTH, emoji=False)
err = Console(stderr=True, highlight=False, emoji=False)


def print_json(facts: Any) -> None:
    """Print facts as JSON on stdout, for scripts."""
    typer.echo(in_json(json.dumps(facts, indent=2, default=str, allow_nan=False)))


def print_json_list(items: Iterable[Any]) -> None:
    """Print a list as `print_json` does, each item as it comes."""
    mark = "["
    for item in items:
        typer.echo(mark)
        typer.echo(textwrap.indent(json.dumps(item, indent=2, allow_nan=False), "  "), nl=False)
        mark = ","
    typer.echo("[]" if mark == "[" else "\n]")


def say(text: str, to: Console = err) -> None:
    """Print a line for the user, literally: names and paths may look like markup."""
    to.print(harmless(text), markup=False, soft_wrap=True)


def named(name: str | None, up: Sequence[str]) -> str:
    """The name that was given, or the cluster that is meant without one, which is then told.

    Raises:
        UsageError: several clusters are up.
    """
    if name is not None:
        return name
    meant = unnamed(up)
    if meant in up and meant != USUAL:
        say(f"{meant}: the only cluster that is up")
    return meant


def chosen(known: list[str], tasks: list[str]) -> list[str]:
    """These tasks, all known ones if there are none; raises UsageError for an unknown task."""
    unknown = [task for task in tasks if task not in known]
    if unknown:
        raise UsageError(f"task {unknown[0]} was not found", proposal(unknown[0], known))
    return tasks or known


def short(path: Path) -> str:
    """The path relative to the current directory if it is below it, else as it is."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def print_error(error: KitError, as_json: bool = False) -> None:
    """Print an error and its cure: on stderr, or as JSON on stdout."""
    if as_json:
        facts = {"message": error.message, "cure": error.cure, "exit_code": error.exit_code}
        print_json({"success": False, "error": facts, **({"run": error.run} if error.run else {})})
        return
    err.print("error:", style="bold red", end=" ")
    say(error.message)
    if error.cure:
        say(f"  → {error.cure}")


def _print_version(wanted: bool) -> None:
    if wanted:
        from cluster_kit.run.versions import versions  # a tenth of a second for this option only

        typer.echo("\n".join(versions()))
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(
        False,
        "--version",
        callback=_print_version,
        is_eager=True,
        help="Print the versions of kit, engine, Compose and image.",
    ),
) -> None:
    """Local clusters for distributed TensorFlow: one container per task."""
