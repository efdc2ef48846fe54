"""`exec`, `shell`, `profile` and `tensorboard`: look into the tasks of a cluster."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from cluster_kit.cli import manifest_options
from cluster_kit.cli.app import (
    app,
    current_host,
    named,
    out,
    print_json,
    say,
    short,
    without_cluster,
)
from cluster_kit.errors import UsageError
from cluster_kit.platforms.engine import Container, Engine
from cluster_kit.run import task_exec
from cluster_kit.run.companions import EventFiles, name_of, serving
from cluster_kit.run.find import cluster_name, of_workspace
from cluster_kit.run.history import run_named
from cluster_kit.run.run_directory import run_of
from cluster_kit.run.task_exec import profile, refuse_seconds
from cluster_kit.workspace import here

KINDS = ("compute", "waiting", "sending", "input", "dispatch", "idle")
"""The kinds of activity in profile.json, and their columns; at each moment a task does one of
them."""
OPS = 3
HOW = "open it at https://ui.perfetto.dev (the file stays in your browser) or in chrome://tracing"


def tasks_table(facts: Mapping[str, Any]) -> Table:
    """One row for each task that was traced."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("task")
    for heading in ("runs", "ms each", *KINDS):
        table.add_column(heading, justify="right")
    table.add_column("waits for")
    for name, row in facts["tasks"].items():
        shares = (f"{100 * row['shares'].get(kind, 0.0):.0f} %" for kind in KINDS)
        table.add_row(
            Text(name), str(row["runs"] or "-"), each(row), *shares, Text(row["waits_for"])
        )
    return table


def ops_table(facts: Mapping[str, Any]) -> Table:
    """The longest ops of each task."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("task")
    table.add_column("longest ops")
    table.add_column("times", justify="right")
    table.add_column("ms", justify="right")
    for name, row in facts["tasks"].items():
        for place, op in enumerate(row["longest_ops"][:OPS]):
            label = f"{op['name']} ({op['op']})"
            table.add_row(
                Text("" if place else name), Text(label), str(op["count"]), f"{op['ms']:.1f}"
            )
    return table


def each(row: Mapping[str, Any]) -> str:
    """The milliseconds from one run of a task's graph to the next."""
    return f"{1000 * row['seconds'] / row['runs']:.1f}" if row["runs"] else "-"


def remarks(facts: Mapping[str, Any]) -> Iterator[str]:
    """Lines below the tables: tasks without a trace, a trace without steps, the cost of tracing."""
    for task, why in facts["missing"].items():
        yield f"{task} is missing in the trace: {why}"
    before, during = facts["steps_per_s"]["before"], facts["steps_per_s"]["during"]
    if not any(row["runs"] for row in facts["tasks"].values()):
        later = "profile while it trains, or for longer (--seconds)"
        eager = "a step outside of a `tf.function` cannot be told from other work"
        yield f"no step is seen in {facts['seconds']:g} s of trace: {eager if during else later}"
    if before and during is not None:
        change = 100 * (1 - during / before)
        slower = f"{change:.0f} % slower" if change >= 1 else "no slower"
        yield f"steps/s: {before:g} before, {during:g} while it was traced ({slower})"


def size(count: int) -> str:
    """A number of bytes for people: `1.2 GB`."""
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{count / 1e3:.1f} kB"


AS_IT_IS = {"ignore_unknown_options": True}
"""Options that are not the kit's are passed to the command: `exec chief-0 ls -l`."""


@app.command("exec", context_settings=AS_IT_IS)
def exec_(
    task: manifest_options.TaskName,
    command: Annotated[
        list[str] | None, typer.Argument(help="After `--`: the command and its arguments.")
    ] = None,
    name: manifest_options.OfCluster = None,
) -> None:
    """Run a command inside a running task; the exit code is the command's own."""
    if not command:
        raise UsageError("no command is given", f"`cluster-kit exec {task} -- COMMAND`")
    _run(task, name, command)


@app.command()
def shell(task: manifest_options.TaskName, name: manifest_options.OfCluster = None) -> None:
    """Open a shell inside a running task."""
    _run(task, name, task_exec.SHELL)


def _run(task: str, name: str | None, command: list[str] | tuple[str, ...]) -> None:
    engine = current_host().connect()
    container = task_named(engine, task, name)
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    raise typer.Exit(
        task_exec.run_inside(current_host(), engine, container, command, terminal=terminal)
    )


def cluster_to_change(name: str | None, engine: Engine, up: Sequence[str]) -> str:
    """The cluster, named directly or by its manifest, that a command is to change.

    Raises:
        UsageError: a manifest of this directory names it, but it was started in another one.
    """
    cluster = cluster_name(named(name, engine, up, changes=True), here(), up)
    if name in (None, cluster) or cluster not in up:
        return cluster
    if cluster in of_workspace(engine.glance(), here(), up):
        return cluster
    containers = [one for one in engine.containers(cluster) if one.output]
    where = f"in {run_of(containers).workspace}" if containers else "in another directory"
    raise UsageError(
        f"the cluster {cluster} of {name} that is up was started {where}",
        f"if you mean it, write its name: {cluster}",
    )


def task_named(engine: Engine, task: str, name: str | None, *, changes: bool = False) -> Container:
    """The container of a task, in the cluster with this name or in the default one (`named`)."""
    if task.startswith("-"):
        raise UsageError(f"unknown option {task}", "`--help` lists the options")
    up = engine.clusters()
    if name is None and task in up:
        return task_exec.task_of(engine, task, task)
    if changes:
        return task_exec.task_of(engine, cluster_to_change(name, engine, up), task)
    return task_exec.task_of(engine, cluster_name(named(name, engine, up), here(), up), task)


@app.command("profile")
def profile_(
    name: manifest_options.ClusterName = None,
    tasks: manifest_options.Tasks = None,
    seconds: Annotated[
        float, typer.Option("--seconds", help="How long to trace: more than 0, at most 60.")
    ] = 2.0,
    json_: manifest_options.Json = False,
) -> None:
    """Trace the tasks of a running cluster at once: one Perfetto trace, and where time goes."""
    refuse_seconds(seconds)
    name, tasks = without_cluster(name, tasks or [])
    engine = current_host().connect()
    up = engine.clusters()
    cluster = cluster_to_change(name, engine, up)  # tracing costs time
    taken = profile(engine, cluster, seconds, tasks, (lambda _: None) if json_ else say)
    if json_:
        print_json({**taken.facts, "path": str(taken.trace)})
        return
    out.print(tasks_table(taken.facts))
    out.print()
    out.print(ops_table(taken.facts))
    for line in remarks(taken.facts):
        say(line)
    say(f"trace: {short(taken.trace)}, {size(int(taken.facts['trace_bytes']))}")
    say(f"  {HOW}")


@app.command()
def tensorboard(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            help="A cluster's name for its newest run, or a run's directory; several are shown "
            "together. Default: the newest run of all.",
            autocompletion=manifest_options.runs,
        ),
    ] = None,
    port: Annotated[
        int,
        typer.Option("--port", min=0, max=65535, help="Port on 127.0.0.1 (0: choose a free one)."),
    ] = 0,
) -> None:
    """Show runs in TensorBoard until Ctrl-C, also while they train; nothing has to be installed."""
    selected = [run_named(run, here()) for run in runs or [""]]
    folders = {name_of(past_run): EventFiles.of(past_run.output) for past_run in selected}
    user = f"{os.getuid()}:{os.getgid()}"
    with serving(current_host(), folders, port, user, say) as url:
        for past_run in selected:
            empty = "" if folders[name_of(past_run)].exist() else ", which has no event files"
            say(f"showing {short(past_run.path)}{empty}")
        say(f"TensorBoard: {url}  (Ctrl-C ends it)")
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            say("TensorBoard ended")
