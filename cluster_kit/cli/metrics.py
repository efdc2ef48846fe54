"""The verb metrics: runs for Prometheus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cluster_kit.cli import completion
from cluster_kit.cli.app import app, current_host, say, short
from cluster_kit.errors import HostError, UsageError
from cluster_kit.run.history import run_named
from cluster_kit.run.run_metrics import exposition
from cluster_kit.util.kit_files import TEMPLATES
from cluster_kit.workspace import here, write_atomically

DASHBOARD = TEMPLATES / "grafana" / "cluster-kit.json"


@app.command()
def metrics(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            help="A cluster's name for its newest run, or a run's directory; several are printed "
            "together. Default: the newest run of all.",
            autocompletion=completion.runs,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Output file for node_exporter; its name must end with .prom."
        ),
    ] = None,
    dashboard: Annotated[
        bool,
        typer.Option("--dashboard", help="Print a Grafana dashboard for these metrics (JSON)."),
    ] = False,
) -> None:
    """Print Prometheus metrics of past and running runs; each run also leaves metrics.prom."""
    if dashboard:
        if runs or output:
            raise UsageError(
                "the dashboard is the same for all runs, and goes to stdout",
                "`cluster-kit metrics --dashboard > cluster-kit.json`",
            )
        typer.echo(DASHBOARD.read_text(encoding="utf-8"), nl=False)
        return
    if output is not None and (output.is_dir() or output.suffix != ".prom"):
        what = "is a directory" if output.is_dir() else "does not end with .prom"
        raise UsageError(
            f"{output} {what}: node_exporter reads files *.prom only",
            "name a file: --output DIRECTORY/cluster-kit.prom",
        )
    found = {run.path: run for run in (run_named(name, here()) for name in runs or [""])}
    text = exposition(found.values(), current_host().engine_or_none)
    if output is None:
        typer.echo(text, nl=False)
        return
    try:
        write_atomically(output, text)
    except OSError as error:
        raise HostError(
            f"{output} cannot be written: {error.strerror}: {error.filename}",
            "name a file that you may write: --output cluster-kit.prom",
        ) from error
    say(f"written: {short(output.absolute())}")
