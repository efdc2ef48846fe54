"""The verb report: runs as a page to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cluster_kit.cli import completion
from cluster_kit.cli.app import app, current_host, say, short
from cluster_kit.errors import HostError, UsageError
from cluster_kit.run.history import run_named
from cluster_kit.run.known_secrets import known_of
from cluster_kit.run.run_report import write_report, write_together
from cluster_kit.workspace import here

TOGETHER = "report.html"
"""The page of several runs, in the current directory."""


@app.command()
def report(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            help="A run's directory, or a cluster's name for its newest run; several are shown "
            "side by side. Default: the newest run of all.",
            autocompletion=completion.runs,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Output file (default: in the run's directory; for several runs, here).",
        ),
    ] = None,
) -> None:
    """Write report.html: lanes over time, curves, the cluster. One file that needs no network."""
    found = [run_named(run, here()) for run in runs or [""]]
    known = {run: known_of(run, current_host().engine_or_none) for run in found}
    try:
        if len(found) == 1 and output is None:
            path = write_report(found[0], known[found[0]])
        else:
            path = output or Path(TOGETHER)
            if path.is_dir():
                raise UsageError(f"{path} is a directory", "name a file: --output report.html")
            write_together(known, path)
    except OSError as error:
        raise HostError(
            f"the report cannot be written: {error.strerror}: {error.filename}",
            "name a file that you may write: --output report.html",
        ) from error
    say(f"written: {short(path.absolute())}")
