"""Verbs that start, render or remove a cluster: up, render, down."""

from __future__ import annotations

import contextlib
import difflib
import shlex
import sys
from typing import Annotated

import typer

from cluster_kit.backends.choose import backend
from cluster_kit.cli import options
from cluster_kit.cli.app import app, err, print_json, say, short
from cluster_kit.cli.ending import end_with, print_started
from cluster_kit.engine import client
from cluster_kit.errors import UsageError
from cluster_kit.image.build import image_present
from cluster_kit.run.launch import launch, launch_detached
from cluster_kit.run.prepare import Request, cluster_name, engine_or_none, prepare
from cluster_kit.run.take_down import take_down
from cluster_kit.show.view import make_view
from cluster_kit.util import stdio
from cluster_kit.workspace import here


@app.command()
@options.requested
def up(
    request: Request,
    *,
    keep: options.Keep = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on in the last run's directory.")
    ] = False,
    detach: Annotated[
        bool, typer.Option("--detach", help="Return once the containers have started.")
    ] = False,
    json_: options.Json = False,
) -> None:
    """Run a cluster to its end: plan, build, start, watch, judge, save, remove."""
    if detach and keep:
        raise UsageError("--keep with --detach", "leave it to `cluster-kit attach NAME --keep`")
    stdio.outlive_readers()
    view = make_view(err)
    with contextlib.closing(view):
        if detach:
            run = launch_detached(request, here(), view, resume=resume)
        else:
            outcome = launch(request, here(), view, keep=keep, resume=resume)
    if detach:
        print_started(run, as_json=json_)
    else:
        end_with(outcome, keep=keep, as_json=json_)


@app.command()
@options.requested
def render(
    request: Request,
    *,
    check: Annotated[bool, typer.Option("--check", help="Fail if the file is stale.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print it, write nothing.")] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Show what would change.")] = False,
    json_: options.Json = False,
) -> None:
    """Write compose/<name>/compose.yaml, which runs with `docker compose up` alone."""
    workspace = here()
    prepared = prepare(request, workspace, engine_or_none())
    cluster = prepared.cluster
    for hint in prepared.hints:
        say(f"warning: {hint}")
    starter, file = backend(), workspace.generated(cluster.name)
    text = starter.render(cluster)
    old = file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""
    if dry_run:
        typer.echo(text, nl=False)
    elif diff:
        typer.echo(_diff(old, text, short(file)), nl=False)
    elif check and old != text:
        state = "stale" if old else "missing"
        raise UsageError(f"{short(file)} is {state}", f"run `{_same_without_check()}`")
    elif not check:
        starter.write(workspace, cluster, text)
    if json_ and not (dry_run or diff):
        tasks = {task.name: str(task.ip) for task in cluster.tasks}
        print_json({"file": str(file), "subnet": str(cluster.subnet), "tasks": tasks})
    elif not (dry_run or diff):
        say(f"{short(file)}: {len(cluster.tasks)} tasks on {cluster.subnet}")
        if cluster.variant and not image_present(cluster.image):
            build = "make image"
            if cluster.requirements:
                build = f"cluster-kit image build {request.manifest}"
            say(f"  its image is not built yet: `{build}`, then `docker compose up` there")


def _same_without_check() -> str:
    """The command line of this call without `--check`: it writes the file that was checked."""
    return shlex.join(["cluster-kit", *(word for word in sys.argv[1:] if word != "--check")])


def _diff(old: str, new: str, name: str) -> str:
    lines = difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), name, f"{name} (new)"
    )
    return "".join(lines)


@app.command()
def down(name: options.ClusterName = "quickstart", json_: options.Json = False) -> None:
    """Remove a cluster's containers and network, found by their labels."""
    engine = client.connect()
    cluster = cluster_name(name, here(), engine.clusters())
    if cluster not in engine.clusters():
        others = ", ".join(engine.clusters()) or "none"
        if json_:
            print_json({"cluster": cluster, "removed": 0})
        else:
            say(f"nothing to remove: no cluster {cluster} is up (up: {others})")
        return
    count = take_down(engine, cluster)
    if json_:
        print_json({"cluster": cluster, "removed": count})
    else:
        say(f"{cluster}: {count} containers and their network removed")
