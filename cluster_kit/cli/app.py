"""The application, its one way to fail, and where its words go."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from cluster_kit import __version__
from cluster_kit.errors import KitError

PIPED_WIDTH = int(os.environ.get("COLUMNS") or 200)
"""Where nobody sees the edge of a terminal, nothing is cut off at one."""

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
    """Facts for a script, on stdout."""
    typer.echo(json.dumps(facts, indent=2, default=str, allow_nan=False))


def say(text: str, to: Console = err) -> None:
    """A line for a person, to the letter: names and paths may look like markup."""
    to.print(text, markup=False, soft_wrap=True)


def short(path: Path) -> str:
    """Relative to the current directory where it lies below it."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def tell(error: KitError, as_json: bool = False) -> None:
    """Say what happened, the rule and the cure."""
    if as_json:
        facts = {"message": error.message, "cure": error.cure, "exit_code": error.exit_code}
        print_json({"success": False, "error": facts})
        return
    err.print("error:", style="bold red", end=" ")
    err.print(error.message, markup=False, soft_wrap=True)
    if error.cure:
        err.print(f"  → {error.cure}", markup=False, soft_wrap=True)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"cluster-kit {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Local clusters for distributed TensorFlow: one container per task."""
