"""The verb summary: how a run ended, on one page."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from cluster_kit.cli import completion, options
from cluster_kit.cli.app import app, out, print_json
from cluster_kit.cli.ending import print_outcome
from cluster_kit.errors import UsageError
from cluster_kit.run.outcome import Outcome
from cluster_kit.summary.markdown import markdown
from cluster_kit.summary.read import read, values
from cluster_kit.util.terminal import harmless
from cluster_kit.workspace import here


@app.command()
def summary(
    run: Annotated[
        str,
        typer.Argument(
            help="A run's directory, its outcome.json, what `up --json` printed, or a cluster's "
            "name for its newest run; the newest run of all without one.",
            autocompletion=completion.runs,
        ),
    ] = "",
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print Markdown with pictures, for a CI job summary.")
    ] = False,
    as_values: Annotated[
        bool, typer.Option("--values", help="Print lines NAME=VALUE: success, exit_code, reason …")
    ] = False,
    json_: options.Json = False,
) -> None:
    """Print how a run ended, also one that never started: verdict, error, tasks, metrics."""
    if as_markdown + as_values + json_ > 1:
        raise UsageError("--markdown, --values and --json exclude each other", "give one of them")
    evidence = read(run, here())
    outcome = evidence.outcome
    if as_markdown:
        typer.echo(markdown(evidence), nl=False)
    elif as_values:
        typer.echo("\n".join(f"{name}={value}" for name, value in values(outcome).items()))
    elif json_:
        print_json(outcome.as_json())
    else:
        print_outcome(outcome)
        if outcome.tasks:
            out.print(_tasks(outcome))


def _tasks(outcome: Outcome) -> Table:
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("task", "ip", "gpu", "exit code", "restarts", ""):
        made.add_column(
            heading, justify="right" if heading in ("exit code", "restarts") else "left"
        )
    for task in outcome.tasks:
        style = "bold red" if task.name == outcome.blame else ""
        code = "-" if task.exit_code is None else str(task.exit_code)
        words = (task.name, task.ip, ",".join(task.gpu) or "-", code, str(task.restarts or "-"))
        memory = "out of memory" if task.oom else ""
        made.add_row(*(Text(harmless(word), style) for word in (*words, memory)))
    return made
