"""`up`, `attach` and `wait`: run a cluster to its end, or join one that runs."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from cluster_kit.cli import manifest_options
from cluster_kit.cli.app import app, current_host, err, named, print_error, print_json, say, short
from cluster_kit.cli.manifest_options import WithBareOptions, kept, requested
from cluster_kit.cli.serve import cluster_of, live
from cluster_kit.cli.verdict_lines import end_with, print_outcome, print_started
from cluster_kit.errors import HostError, Interrupted, ManifestError, UsageError
from cluster_kit.host import Host
from cluster_kit.programs.catalog import PROGRAMS
from cluster_kit.run import attach as going_on
from cluster_kit.run.find import reach
from cluster_kit.run.launch import (
    Milestone,
    UntilChanged,
    files_of,
    launch,
    launch_detached,
    launch_until,
)
from cluster_kit.run.outcome import Outcome
from cluster_kit.run.prepare import prepare_locked, program_help, wants_help
from cluster_kit.run.request import Request
from cluster_kit.run.run import Run
from cluster_kit.run.start import ensure_image
from cluster_kit.run.verdict import Reason
from cluster_kit.show.view import QuietView, make_view
from cluster_kit.util import stdio
from cluster_kit.util.changes import Changes
from cluster_kit.workspace import Workspace, here

MOST_TOLD = 3


def run_on_changes(
    host: Host, request: Request, workspace: Workspace, *, resume: bool, as_json: bool
) -> NoReturn:
    """Run a cluster each time that its files change, until Ctrl-C.

    Errors in a manifest or a program are printed, and the next change is awaited.

    Raises:
        Interrupted: Ctrl-C, while no cluster ran.
        KitError: as `launch`, but for a ManifestError.
    """
    while True:
        watched = files_of(request, workspace)
        with Changes(watched) as changes:
            while watched == files_of(request, workspace):
                _once(host, request, workspace, changes, resume=resume, as_json=as_json)


def _once(
    host: Host,
    request: Request,
    workspace: Workspace,
    changes: Changes,
    *,
    resume: bool,
    as_json: bool,
) -> None:
    """Run the cluster once, then wait for the next change."""
    until = UntilChanged(lambda: _taken(changes))
    host.interrupts.interrupt_once()  # after a run both signals are ignored
    try:
        outcome = _run(host, request, workspace, until, resume=resume)
    except ManifestError as error:
        print_error(error, as_json)
    else:
        host.interrupts.interrupt_once()
        _tell(outcome, as_json=as_json)
    changed: Sequence[Path] = until.seen
    if not changed:
        say("waiting for a change of its files; Ctrl-C ends it")
        try:
            changed = changes.wait()
        except KeyboardInterrupt:
            raise Interrupted("interrupted: nothing was running") from None
        except OSError as error:
            raise _blind(error) from None
    kept = [path for path in changed if path.exists()]  # not what an editor wrote on the way
    names = [short(path) for path in kept or changed]
    more = f" and {len(names) - MOST_TOLD} more" if len(names) > MOST_TOLD else ""
    say(f"changed: {', '.join(names[:MOST_TOLD])}{more}; running again")


def _run(
    host: Host, request: Request, workspace: Workspace, until: UntilChanged, *, resume: bool
) -> Outcome:
    view = make_view(err)
    with contextlib.closing(view):
        return launch(host, request, workspace, view, keep=False, resume=resume, observer=until)


def _tell(outcome: Outcome, *, as_json: bool) -> None:
    """Print an outcome; raises Interrupted if the run was interrupted."""
    if outcome.reason == Reason.INTERRUPTED:
        end_with(outcome, as_json=as_json)
    if as_json:
        print_json(outcome.as_json())
    else:
        print_outcome(outcome)


def _taken(changes: Changes) -> list[Path]:
    try:
        return changes.taken()
    except OSError as error:
        raise _blind(error) from None


def _blind(error: OSError) -> HostError:
    return HostError(
        f"this host cannot tell when files change: {error}",
        "WATCHFILES_FORCE_POLLING=1 looks at them again and again; a program in a smaller folder "
        "needs less",
    )


@app.command(cls=WithBareOptions)
@requested
def up(
    request: Request,
    *,
    keep: manifest_options.Keep = "no",
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Continue in the last run's directory, from its last checkpoint."
        ),
    ] = False,
    detach: Annotated[
        bool, typer.Option("--detach", help="Return as soon as the containers have started.")
    ] = False,
    ready: Annotated[
        Milestone | None,
        typer.Option(
            "--ready",
            metavar="[servers|step]",
            show_choices=False,
            help="With --detach: return when all servers answer, or after the first step.",
        ),
    ] = None,
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
    exit_code: manifest_options.ExitCode = "kit",
    json_: manifest_options.Json = False,
) -> None:
    """Run a cluster to its end: plan, build, start, watch, judge, save, remove."""
    _refuse_together(
        keep=keep != "no", detach=detach, watch=watch, serve=serve, exit_code=exit_code
    )
    if ready and not detach:
        raise UsageError("--ready without --detach", "add --detach: without it `up` waits anyway")
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
            host = current_host()
            ended: Run | Outcome
            if ready:
                ended = launch_until(host, request, here(), view, ready, resume=resume)
            elif detach:
                ended = launch_detached(host, request, here(), view, resume=resume)
            else:
                ended = launch(host, request, here(), view, keep=kept(keep), resume=resume)
    if isinstance(ended, Outcome):
        end_with(ended, as_json=json_, exit_code=exit_code)
    print_started(ended, ready=ready, as_json=json_)


def _refuse_together(*, keep: bool, detach: bool, watch: bool, serve: bool, exit_code: str) -> None:
    """Raise UsageError for options that exclude each other."""
    if detach and serve:
        raise UsageError("--serve with --detach", "leave it to `cluster-kit serve NAME`")
    if detach and keep:
        raise UsageError("--keep with --detach", "leave it to `cluster-kit attach NAME --keep`")
    if detach and exit_code != "kit":
        later = f"leave it to `cluster-kit wait NAME --exit-code {exit_code}`"
        raise UsageError("--exit-code with --detach", later)
    options = {"--keep": keep, "--detach": detach, "--exit-code program": exit_code != "kit"}
    for option in (name for name, is_set in options.items() if is_set and watch):
        raise UsageError(f"{option} with --watch", f"leave out {option}: the next run comes")


def _print_help(request: Request) -> None:
    """Print the help of the cluster's program; no cluster is started."""
    host = current_host()
    with contextlib.closing(make_view(err)) as view:
        cluster = prepare_locked(host, request, here(), host.engine_or_none(), view.phase).cluster
        if cluster.leader.command[1] not in PROGRAMS:
            ensure_image(host, cluster, here(), view)
        typer.echo(program_help(host, cluster), nl=False)


def _named(host: Host, name: str | None) -> str:
    """The cluster's name; without one, the name of the default cluster, which is also printed."""
    engine = reach(host, name, here())
    return named(name, engine, engine.clusters())


@app.command(cls=WithBareOptions)
def attach(
    name: manifest_options.ClusterName = None,
    keep: manifest_options.Keep = "no",
    exit_code: manifest_options.ExitCode = "kit",
    json_: manifest_options.Json = False,
) -> None:
    """Watch a detached cluster to its end: judge, save, remove, as `up` does."""
    stdio.outlive_readers()
    host = current_host()
    name = _named(host, name)
    view = make_view(err)
    with contextlib.closing(view):
        outcome = going_on.attach(host, name, here(), view, keep=kept(keep))
    end_with(outcome, as_json=json_, exit_code=exit_code)


@app.command(cls=WithBareOptions)
def wait(
    name: manifest_options.ClusterName = None,
    keep: manifest_options.Keep = "no",
    exit_code: manifest_options.ExitCode = "kit",
    json_: manifest_options.Json = False,
) -> None:
    """Wait for the end of a cluster, without the live view; Ctrl-C leaves the cluster up."""
    stdio.outlive_readers()
    host = current_host()
    name = _named(host, name)
    try:
        outcome = going_on.wait(host, name, here(), QuietView(err), keep=kept(keep))
    except KeyboardInterrupt:
        raise _left_up(name, watched=going_on.is_watched(host, name, here())) from None
    end_with(outcome, as_json=json_, exit_code=exit_code)


def _left_up(name: str, *, watched: bool) -> Interrupted:
    """The end of an interrupted `wait`: what happens to the cluster, and the next commands."""
    if watched:
        return Interrupted(
            f"interrupted: {name} keeps running, and another process watches it",
            f"`cluster-kit wait {name}` waits again, `cluster-kit down {name}` ends it",
        )
    return Interrupted(
        "interrupted: no command waits for the cluster any more, and it keeps running",
        f"`cluster-kit attach {name}` or `cluster-kit wait {name}` continues, "
        f"`cluster-kit down {name}` ends it",
    )
