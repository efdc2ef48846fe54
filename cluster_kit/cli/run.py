"""The verb that runs a cluster: up."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Annotated

import typer

from cluster_kit.cli import options
from cluster_kit.cli.app import app, current_host, err, say
from cluster_kit.cli.ending import end_with, print_started
from cluster_kit.cli.requested import requested
from cluster_kit.cli.serve import cluster_of, live
from cluster_kit.cli.watch import run_on_changes
from cluster_kit.errors import UsageError
from cluster_kit.programs.catalog import PROGRAMS
from cluster_kit.run.arguments import program_help, wants_help
from cluster_kit.run.launch import launch, launch_detached
from cluster_kit.run.prepare import prepare_locked
from cluster_kit.run.request import Request
from cluster_kit.run.start import ensure_image
from cluster_kit.show.view import make_view
from cluster_kit.util import stdio
from cluster_kit.workspace import here


@app.command()
@requested
def up(
    request: Request,
    *,
    keep: options.Keep = False,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Continue in the last run's directory, from its last checkpoint."
        ),
    ] = False,
    detach: Annotated[
        bool, typer.Option("--detach", help="Return as soon as the containers have started.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Run again whenever the program's files change.")
    ] = False,
    serve: Annotated[
        bool, typer.Option("--serve", help="Show the run as a live page in a browser.")
    ] = False,
    debug: Annotated[
        str,
        typer.Option(
            "--debug",
            metavar="TASK[:PORT]",
            help="Make a task's program wait for a debugger on 127.0.0.1, port 5678 "
            "unless PORT is given.",
        ),
    ] = "",
    exit_code: options.ExitCode = "kit",
    json_: options.Json = False,
) -> None:
    """Run a cluster to its end: plan, build, start, watch, judge, save, remove."""
    _refuse_together(keep=keep, detach=detach, watch=watch, serve=serve, exit_code=exit_code)
    request = replace(request, debug=debug)
    if wants_help(request.overrides.get("extra_args", ())):
        _print_help(request)
        return
    stdio.outlive_readers()
    with contextlib.ExitStack() as served:
        if serve:
            url = served.enter_context(live(cluster_of(request, here())))
            say(f"live page: {url}")
        if watch:
            run_on_changes(current_host(), request, here(), resume=resume, as_json=json_)
        view = make_view(err)
        with contextlib.closing(view):
            if detach:
                run = launch_detached(current_host(), request, here(), view, resume=resume)
            else:
                outcome = launch(current_host(), request, here(), view, keep=keep, resume=resume)
    if detach:
        print_started(run, as_json=json_)
    else:
        end_with(outcome, keep=keep, as_json=json_, exit_code=exit_code)


def _refuse_together(*, keep: bool, detach: bool, watch: bool, serve: bool, exit_code: str) -> None:
    """Raise UsageError for options that cannot go together."""
    if detach and serve:
        raise UsageError("--serve with --detach", "leave it to `cluster-kit serve NAME`")
    if detach and keep:
        raise UsageError("--keep with --detach", "leave it to `cluster-kit attach NAME --keep`")
    if detach and exit_code != "kit":
        later = f"leave it to `cluster-kit wait NAME --exit-code {exit_code}`"
        raise UsageError("--exit-code with --detach", later)
    given = {"--keep": keep, "--detach": detach, "--exit-code program": exit_code != "kit"}
    for option in (name for name, there in given.items() if there and watch):
        raise UsageError(f"{option} with --watch", f"leave out {option}: the next run comes")


def _print_help(request: Request) -> None:
    """Print the help of the program that would be run; no cluster is started."""
    with contextlib.closing(make_view(err)) as view:
        cluster = prepare_locked(
            current_host(), request, here(), current_host().engine_or_none(), view.phase
        ).cluster
        if cluster.leader.command[1] not in PROGRAMS:
            ensure_image(current_host(), cluster, here(), view)
        typer.echo(program_help(current_host(), cluster), nl=False)
