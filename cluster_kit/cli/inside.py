"""Verbs that run something inside a task's container: exec, shell."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from cluster_kit.cli import options
from cluster_kit.cli.app import app, current_host, named
from cluster_kit.errors import UsageError
from cluster_kit.platforms.engine import Container, Engine
from cluster_kit.run import task_exec
from cluster_kit.run.reach import cluster_name
from cluster_kit.workspace import here

AS_IT_IS = {"ignore_unknown_options": True}
"""What is no option of ours is the command's: `exec chief-0 ls -l`."""


@app.command("exec", context_settings=AS_IT_IS)
def exec_(
    task: options.TaskName,
    command: Annotated[
        list[str] | None, typer.Argument(help="After `--`: the command and its arguments.")
    ] = None,
    name: options.OfCluster = None,
) -> None:
    """Run a command inside a running task; the exit code is the command's own."""
    if not command:
        raise UsageError("no command is given", f"`cluster-kit exec {task} -- COMMAND`")
    _run(task, name, command)


@app.command()
def shell(task: options.TaskName, name: options.OfCluster = None) -> None:
    """Open a shell inside a running task."""
    _run(task, name, task_exec.SHELL)


def _run(task: str, name: str | None, command: list[str] | tuple[str, ...]) -> None:
    engine = current_host().connect()
    container = task_named(engine, task, name)
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    raise typer.Exit(
        task_exec.run_inside(current_host(), engine, container, command, terminal=terminal)
    )


def task_named(engine: Engine, task: str, name: str | None, *, changes: bool = False) -> Container:
    """The container of a task of the cluster that is named, or of the one that `named` finds."""
    if task.startswith("-"):
        raise UsageError(f"unknown option {task}", "`--help` lists those that there are")
    up = engine.clusters()
    if name is None and task in up:
        return task_exec.task_of(engine, task, task)
    return task_exec.task_of(
        engine, cluster_name(named(name, engine, up, changes=changes), here(), up), task
    )
