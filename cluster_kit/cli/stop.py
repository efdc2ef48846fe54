"""`stop`, `start`, `restart` and `down`: end or repeat tasks of a cluster that is up."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from cluster_kit.cli import manifest_options
from cluster_kit.cli.app import app, current_host, print_json, say
from cluster_kit.cli.inside import cluster_to_change, task_named
from cluster_kit.platforms.engine import Engine
from cluster_kit.run import lifecycle
from cluster_kit.run.find import reach
from cluster_kit.run.run_directory import run_of
from cluster_kit.run.take_down import take_down
from cluster_kit.util.terminal import counted
from cluster_kit.workspace import here, user_name


@app.command()
def restart(
    task: manifest_options.TaskName,
    name: manifest_options.OfCluster = None,
    json_: manifest_options.Json = False,
) -> None:
    """End a task and start it again, with its name and address; with the leader, all tasks."""
    engine = current_host().connect()
    container = task_named(engine, task, name, changes=True)
    done = lifecycle.restart(current_host(), engine, container)
    if json_:
        print_json({"cluster": container.cluster, "restarted": done})
        return
    consequence = (
        "" if done == (task,) else ": the job ends with it, so all tasks were started again"
    )
    say(f"{container.cluster}: {task} was restarted{consequence}")


@app.command()
def stop(
    name: manifest_options.ClusterName = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    json_: manifest_options.Json = False,
) -> None:
    """Stop a cluster's tasks until `start`; they keep their addresses and files."""
    engine, cluster = _named(name)
    if not yes and sys.stdin.isatty():
        _ask(engine, cluster)
    done = lifecycle.stop(current_host(), engine, cluster)
    if json_:
        print_json({"cluster": cluster, "stopped": done})
        return
    say(f"{cluster} is stopped{'' if done else ' already'}; `cluster-kit start {cluster}` goes on")


@app.command()
def start(name: manifest_options.ClusterName = None, json_: manifest_options.Json = False) -> None:
    """Start the tasks of a stopped cluster again, with the same addresses."""
    engine, cluster = _named(name)
    done = lifecycle.start(current_host(), engine, cluster)
    if json_:
        print_json({"cluster": cluster, "started": done})
        return
    state = "goes on" if done else "runs already"
    say(f"{cluster} {state}; `cluster-kit attach {cluster}` watches it if no other process does")
    for task in [] if done else lifecycle.failed_tasks(engine, cluster):
        say(f"{task} has ended: `cluster-kit restart {task} --name {cluster}` starts it")


def _ask(engine: Engine, cluster: str) -> None:
    """Ask the user whether to stop the running tasks; ends the command if the answer is no."""
    containers = engine.containers(cluster)
    if not containers or lifecycle.is_stopped(containers):
        return
    tasks = counted(len(containers), "task")
    if not typer.confirm(f"Stop {cluster}, {tasks}, until `cluster-kit start`?", err=True):
        say(f"{cluster} continues: nothing was stopped")
        raise typer.Exit(1)


def _named(name: str | None) -> tuple[Engine, str]:
    engine = current_host().connect()
    return engine, cluster_to_change(name, engine, engine.clusters())


@app.command()
def down(
    name: manifest_options.ClusterName = None,
    engine: manifest_options.OnEngine = None,
    json_: manifest_options.Json = False,
) -> None:
    """Remove a cluster's containers and network, found by their labels."""
    _down(name, reach(current_host(), name, here(), engine), json_=json_)


def _down(name: str | None, engine: Engine, *, json_: bool) -> None:
    up = engine.clusters()
    cluster = cluster_to_change(name, engine, up)
    if cluster not in up:
        running = ", ".join(up) or "none"
        if json_:
            print_json({"cluster": cluster, "removed": 0})
        else:
            say(f"nothing to remove: no cluster {cluster} is up (up: {running})")
        return
    whose = _whose(engine, cluster)
    count = take_down(current_host(), engine, cluster, say=say)
    if json_:
        print_json({"cluster": cluster, "removed": count})
    else:
        counted = "1 container and its" if count == 1 else f"{count} containers and their"
        say(f"{cluster}{whose}: {counted} network removed")


def _whose(engine: Engine, cluster: str) -> str:
    """The text ` (of alice, in /home/alice/project)` if another user started the cluster, without
    the user if it was started elsewhere, else "". Without a workspace it names the output."""
    containers = engine.containers(cluster)
    if not containers or not containers[0].output:
        return ""
    run = run_of(containers)
    try:
        owner = run.owner
    except OSError:  # on another node, or already removed
        return ""
    place = f"in {run.workspace}" if run.workspace != run.path else f"output in {run.output}"
    if owner == os.getuid():
        here_ = run.workspace.resolve() == here().root.resolve()
        return "" if here_ else f" ({place})"
    return f" (of {user_name(owner)}, {place})"
