"""Runs a cluster: load, plan, render, check the host, build, up, watch, judge, save, remove."""

from __future__ import annotations

import time
from datetime import datetime

from cluster_kit.backends.choose import backend
from cluster_kit.engine import client
from cluster_kit.observe.listener import Listener
from cluster_kit.observe.logs import follow_logs
from cluster_kit.run import start
from cluster_kit.run.claim import claim
from cluster_kit.run.conclude import conclude, fail
from cluster_kit.run.context import Launch
from cluster_kit.run.doctor import refuse_if_unfit
from cluster_kit.run.outcome import Outcome
from cluster_kit.run.prepare import Request, prepare
from cluster_kit.run.timings import Stopwatch
from cluster_kit.run.watch import Ending, Watch
from cluster_kit.show.view import View
from cluster_kit.util import signals
from cluster_kit.workspace import Workspace, last_run, new_run


def launch(
    request: Request, workspace: Workspace, view: View, *, keep: bool, resume: bool
) -> Outcome:
    """Run a cluster to its end and return its outcome, which is also saved with the run.

    Whatever happens after the start, the evidence is saved and, unless `keep`, everything removed.

    Args:
        keep: leave the containers there after the end.
        resume: go on in the directory of the last run.
    Raises:
        KitError: it failed before a verdict: an invalid manifest, an unfit host, a lost engine.
        KeyboardInterrupt: it was interrupted before anything was started.
    """
    timings = Stopwatch()
    engine, starter = client.connect(), backend()
    view.phase("planning")
    with timings.step("plan"):
        prepared = prepare(request, workspace, engine)
    for hint in prepared.hints:
        view.warn(str(hint))
    cluster = prepared.cluster
    with timings.step("render"):
        text = starter.render(cluster)
    runs = workspace.runs(cluster.name)
    with claim(runs, cluster.name):
        start.make_room(engine, cluster.name)
        with timings.step("preflight"):
            refuse_if_unfit(prepared.facts, cluster)
        with timings.step("build"):
            start.ensure_image(cluster, view)
        directory = last_run(runs) if resume else new_run(runs, datetime.now())
        since = time.time()
        return _run(
            Launch(prepared, workspace, view, engine, starter, timings, directory, since, keep),
            text,
        )


def _run(run: Launch, text: str) -> Outcome:
    """Start the containers, watch them to the end, and conclude; an error is raised after that."""
    cluster = run.prepared.cluster
    listener = Listener(run.engine, run.name, run.since)
    watch = Watch(run.engine, cluster, run.directory, listener, run.since)
    ending: Ending = "interrupted"
    try:
        count = len(cluster.tasks)
        run.view.phase(f"starting {count} container{'s' if count > 1 else ''}")
        with run.timings.step("up"):
            cluster = start.up(run, text)
        watch = Watch(run.engine, cluster, run.directory, listener, run.since)
        run.view.phase(f"running {cluster.name} on {cluster.subnet}")
        _follow(run, {watch.seen.leader, *watch.seen.sidecars})
        ending = watch.until_ended(run.view.update)
        signals.ignore()
    except KeyboardInterrupt:
        run.view.phase("interrupted: stopping the containers, saving the evidence and cleaning up")
    except BaseException as error:
        signals.ignore()
        fail(run, cluster, watch.seen, error)
        raise
    return conclude(run, cluster, watch.seen, ending)


def _follow(run: Launch, tasks: set[str]) -> None:
    """Pass the log lines of these tasks to the view as they come."""
    containers = [c for c in run.engine.containers(run.name) if c.name in tasks]
    follow_logs(run.engine, containers, run.view.log)
