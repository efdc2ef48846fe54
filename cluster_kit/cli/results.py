"""`report`, `summary`, `metrics` and `bug-report`: results of runs for people, CI and scripts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from cluster_kit.cli import manifest_options
from cluster_kit.cli.app import app, current_host, out, print_json, say, short
from cluster_kit.cli.verdict_lines import print_outcome
from cluster_kit.errors import HostError, UsageError
from cluster_kit.run.bug_report import MOST_FILES, archive
from cluster_kit.run.history import run_named
from cluster_kit.run.known_secrets import known_of
from cluster_kit.run.outcome import Outcome
from cluster_kit.run.run_report import exposition, write_report, write_together
from cluster_kit.summary.markdown import markdown, read, values
from cluster_kit.util.paths import TEMPLATES
from cluster_kit.util.terminal import harmless
from cluster_kit.workspace import here, write_atomically

TOGETHER = "report.html"
"""The page of several runs, in the current directory."""


@app.command()
def report(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            help="A run's directory, or a cluster's name for its newest run; several are shown "
            "side by side. Default: the newest run of all.",
            autocompletion=manifest_options.runs,
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
    selected = [run_named(run, here()) for run in runs or [""]]
    known = {run: known_of(run, current_host().engine_or_none) for run in selected}
    try:
        if len(selected) == 1 and output is None:
            path = write_report(selected[0], known[selected[0]], scaling=True)
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


@app.command()
def summary(
    run: Annotated[
        str,
        typer.Argument(
            help="A run's directory, its outcome.json, what `up --json` printed, or a cluster's "
            "name for its newest run. Default: the newest run of all.",
            autocompletion=manifest_options.runs,
        ),
    ] = "",
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print Markdown with pictures, for a CI job summary.")
    ] = False,
    as_values: Annotated[
        bool, typer.Option("--values", help="Print lines NAME=VALUE: success, exit_code, reason …")
    ] = False,
    json_: manifest_options.Json = False,
) -> None:
    """Print how a run ended, or why it did not start: verdict, error, tasks, metrics."""
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
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("task", "ip", "gpu", "exit code", "restarts", ""):
        table.add_column(
            heading, justify="right" if heading in ("exit code", "restarts") else "left"
        )
    for task in outcome.tasks:
        style = "bold red" if task.name == outcome.blame else ""
        code = "-" if task.exit_code is None else str(task.exit_code)
        words = (task.name, task.ip, ",".join(task.gpu) or "-", code, str(task.restarts or "-"))
        memory = "out of memory" if task.oom else ""
        table.add_row(*(Text(harmless(word), style) for word in (*words, memory)))
    return table


DASHBOARD = TEMPLATES / "grafana" / "cluster-kit.json"


@app.command()
def metrics(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            help="A cluster's name for its newest run, or a run's directory; several are printed "
            "together. Default: the newest run of all.",
            autocompletion=manifest_options.runs,
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
        problem = "is a directory" if output.is_dir() else "does not end with .prom"
        raise UsageError(
            f"{output} {problem}: node_exporter reads files *.prom only",
            "name a file: --output DIRECTORY/cluster-kit.prom",
        )
    selected = {run.path: run for run in (run_named(name, here()) for name in runs or [""])}
    text = exposition(selected.values(), current_host().engine_or_none)
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


@app.command("bug-report")
def bug_report(
    run: Annotated[
        str,
        typer.Argument(
            help="A run's directory, or a cluster's name for its newest run.",
            autocompletion=manifest_options.runs,
        ),
    ] = "",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Output file: FILE.tar.gz or FILE.tgz.")
    ] = None,
) -> None:
    """Write one archive for a bug report: versions, doctor, manifest, logs, events, debug log."""
    past_run = run_named(run, here())
    file_name = f"bug-report-{past_run.path.parent.name}-{past_run.path.name}.tar.gz"
    path = output or past_run.path.parent / file_name  # below runs/, which Git ignores
    try:
        bundle = archive(current_host(), past_run, path)
    except FileExistsError:
        raise UsageError(
            f"{short(path)} exists already", "name another: --output FILE.tar.gz"
        ) from None
    except OSError as error:
        raise HostError(
            f"{short(path)} cannot be written: {error.strerror}",
            "name a file that you may write: --output FILE.tar.gz",
        ) from error
    say(f"written: {short(path.absolute())}, {len(bundle.names)} files")
    if bundle.left_out:
        say(
            f"left out: {len(bundle.left_out)} files that tasks wrote themselves, below output/: "
            "the values of this run's secrets are known only while its containers are there "
            "(`--keep`)"
        )
    if bundle.too_many:
        most = f"the first {MOST_FILES:,} of a folder are taken"
        say(f"left out: {bundle.too_many:,} more files: {most}")
    say("check it before you send it: its logs contain what your program printed")
