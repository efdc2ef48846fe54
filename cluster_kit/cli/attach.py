"""Verbs that go on with a cluster which another command has started: attach, wait."""

from __future__ import annotations

import contextlib

from cluster_kit.cli import options
from cluster_kit.cli.app import app, current_host, err, named
from cluster_kit.cli.ending import end_with
from cluster_kit.errors import Interrupted
from cluster_kit.run import attach as going_on
from cluster_kit.run.reach import reach
from cluster_kit.show.view import QuietView, make_view
from cluster_kit.util import stdio
from cluster_kit.workspace import here


@app.command()
def attach(
    name: options.ClusterName = None,
    keep: options.Keep = False,
    exit_code: options.ExitCode = "kit",
    json_: options.Json = False,
) -> None:
    """Watch a cluster that runs unwatched to its end: judge, save, remove, as `up` does."""
    stdio.outlive_readers()
    host = current_host()
    engine = reach(host, name, here())
    name = named(name, engine, engine.clusters())
    view = make_view(err)
    with contextlib.closing(view):
        outcome = going_on.attach(host, name, here(), view, keep=keep)
    end_with(outcome, keep=keep, as_json=json_, exit_code=exit_code)


@app.command()
def wait(
    name: options.ClusterName = None,
    keep: options.Keep = False,
    exit_code: options.ExitCode = "kit",
    json_: options.Json = False,
) -> None:
    """Wait for the end of a cluster, without the live view; Ctrl-C leaves the cluster up."""
    stdio.outlive_readers()
    host = current_host()
    engine = reach(host, name, here())
    name = named(name, engine, engine.clusters())
    try:
        outcome = going_on.wait(host, name, here(), QuietView(err), keep=keep)
    except KeyboardInterrupt:
        raise Interrupted(
            "interrupted: no command waits for the cluster any more, and it keeps running",
            f"`cluster-kit attach {name}` or `cluster-kit wait {name}` continues, "
            f"`cluster-kit down {name}` ends it",
        ) from None
    end_with(outcome, keep=keep, as_json=json_, exit_code=exit_code)
