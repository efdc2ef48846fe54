"""Runs a cluster: load, plan, render, check the host, build, up, watch, judge, save, remove."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from cluster_kit.host import Host
from cluster_kit.manifest.load import Loaded
from cluster_kit.observe.logs import Followed
from cluster_kit.observe.progress import sizes
from cluster_kit.platforms.engine import Engine
from cluster_kit.platforms.registry import platform_of
from cluster_kit.resolved import Cluster
from cluster_kit.run import companions, disk_space, start
from cluster_kit.run.arguments import check_arguments
from cluster_kit.run.attend import Start, attend, begin
from cluster_kit.run.claim import claim
from cluster_kit.run.data_step import ensure_data
from cluster_kit.run.doctor import refuse_if_unfit
from cluster_kit.run.known_secrets import values_of
from cluster_kit.run.outcome import Outcome
from cluster_kit.run.prepare import Prepared, prepare_locked, read
from cluster_kit.run.request import Request
from cluster_kit.run.run import NOBODY, Observer, Run, Stopwatch
from cluster_kit.run.start import refuse_if_not_shared
from cluster_kit.show.view import View
from cluster_kit.util.debug_log import Recording
from cluster_kit.util.masking import masker
from cluster_kit.workspace import RunDirectory, Workspace, last_run, new_id, new_run

_LOG = logging.getLogger(__name__)


def launch(
    host: Host,
    request: Request,
    workspace: Workspace,
    view: View,
    *,
    keep: bool,
    resume: bool,
    observer: Observer = NOBODY,
) -> Outcome:
    """Run a cluster to its end and return its outcome, which is also saved with the run.

    Whatever happens after the start, the evidence is saved and, unless `keep`, everything removed.

    Args:
        host: the machine that it runs on.
        keep: leave the containers there after the end.
        resume: go on in the directory of the last run.
        observer: is told of the plan, and of each state that the view is shown.
    Raises:
        KitError: it failed before a verdict: an invalid manifest, an unfit host, a lost engine.
        KeyboardInterrupt: it was interrupted before anything was started.
    """
    with (
        Recording() as log,
        _ready(host, request, workspace, view, observer, log, keep=keep, resume=resume) as (
            run,
            up,
        ),
    ):
        return attend(run, up)


def launch_detached(
    host: Host, request: Request, workspace: Workspace, view: View, *, resume: bool
) -> Run:
    """Start a cluster, and return its run as soon as its containers have started.

    `attach` continues it. The run has the cluster that was started, with its addresses.

    Arguments and errors are those of `launch`; after an interrupt everything is removed.
    """
    with (
        Recording() as log,
        _ready(host, request, workspace, view, NOBODY, log, keep=True, resume=resume) as (
            run,
            up,
        ),
    ):
        return replace(run, cluster=begin(run, up))


@contextlib.contextmanager
def _ready(
    host: Host,
    request: Request,
    workspace: Workspace,
    view: View,
    observer: Observer,
    log: Recording,
    *,
    keep: bool,
    resume: bool,
) -> Iterator[tuple[Run, Start]]:
    """A run for which all is prepared, and how to start its containers; see `launch`."""
    timings = Stopwatch(host.clock)
    view.count_from(timings.began)
    loaded = read(request, workspace)
    engine = _of_this_host(host, request, loaded)
    view.phase("planning")
    with timings.step("plan"):
        prepared = prepare_locked(host, request, workspace, engine, view.phase, loaded)
    for hint in prepared.hints:
        view.warn(str(hint))
    check_arguments(host, cluster := prepared.cluster, request.caller)
    observer.planned(cluster)
    starter = platform_of(cluster.engine)
    if engine is None or not cluster.one_host:
        engine = host.connect(cluster.engine, cluster.settings)
    with timings.step("render"):
        text = starter.render(cluster)
    runs = workspace.runs(cluster.name)
    with claim(host, engine, cluster.name, runs):
        start.make_room(engine, cluster.name, request.caller)
        with timings.step("preflight"):
            refuse_if_unfit(host, prepared.facts, cluster)
        with timings.step("build"):
            start.ensure_image(host, cluster, workspace, view)
            companions.ensure(host, cluster, view.phase)
        observer.ready(engine, cluster)
        directory = _directory(host, runs, prepared, resume=resume)
        log.keep_in(directory.path, masker(values_of(cluster, ())))
        _LOG.debug("%s: %d tasks on %s", cluster.name, len(cluster.tasks), cluster.engine)
        run = Run(
            host=host,
            cluster=cluster,
            workspace=workspace,
            view=view,
            engine=engine,
            platform=starter,
            timings=timings,
            directory=directory,
            since=host.clock.time(),
            id=new_id(),
            sizes=sizes(directory.output),
            keep=keep,
            observer=observer,
            caller=request.caller,
            followed=Followed(host.clock),
        )

        yield run, lambda: _started(run, prepared, text)


def _of_this_host(host: Host, request: Request, loaded: Loaded) -> Engine | None:
    """The engine of this host; None if there is none, and it does not run the job anyway.

    Raises:
        UsageError: the job runs where the kit starts nothing.
    """
    platform = platform_of(loaded.manifest.engine)
    if error := platform.not_run(Path(request.manifest).stem):
        raise error
    return host.connect() if platform.by_docker else host.engine_or_none()


def _started(run: Run, prepared: Prepared, text: str) -> Cluster:
    """Fetch the data if need be, start the containers, and return the cluster they are of."""
    if run.cluster.fetch is not None:
        with run.timings.step("data"):
            ensure_data(run.host, run.cluster, run.view)
    run.view.phase(_starting(len(run.cluster.tasks) + len(run.cluster.sidecars)))
    return start.up(run, prepared, text)


def _directory(host: Host, runs: Path, prepared: Prepared, *, resume: bool) -> RunDirectory:
    refuse_if_not_shared(host, prepared.facts.kind, prepared.cluster.image, runs)
    with disk_space.writing(runs):
        return (
            last_run(runs) if resume else new_run(runs, datetime.fromtimestamp(host.clock.time()))
        )


def _starting(count: int) -> str:
    return f"starting {count} container{'s' if count > 1 else ''}"
