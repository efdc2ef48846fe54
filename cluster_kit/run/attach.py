"""Continues a cluster that no process watches: its `up` was killed, or was detached."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cluster_kit.errors import KitError, UsageError
from cluster_kit.host import Host
from cluster_kit.manifest.command_line import Caller
from cluster_kit.observe.logs import Followed
from cluster_kit.platforms.engine import Engine
from cluster_kit.platforms.platform import platform_of
from cluster_kit.run.cluster_lock import Watched, claim, is_claimed
from cluster_kit.run.find import cluster_name, reach
from cluster_kit.run.known_secrets import values_of
from cluster_kit.run.launch import join
from cluster_kit.run.outcome import Outcome, read_outcome
from cluster_kit.run.run import Keep, Run, Stopwatch
from cluster_kit.run.run_directory import Record, read_record, run_of
from cluster_kit.run.verdict import Reason
from cluster_kit.show.view import View
from cluster_kit.util.debug_log import Recording
from cluster_kit.util.masking import masker
from cluster_kit.workspace import RunDirectory, Workspace, newest_run_directory

WAIT_POLL_S = 0.5


def attach(host: Host, reference: str, workspace: Workspace, view: View, *, keep: Keep) -> Outcome:
    """Watch, judge, save and remove a cluster, as `up` would have done; return its outcome.

    A cluster that has a verdict is not changed.

    Args:
        host: the machine that this process runs on.
        reference: the cluster's name, or its manifest's path.
        keep: whether to keep the containers after the end; "failed": only if the run fails.
    Raises:
        Watched: another process watches the cluster.
        UsageError: no cluster with that name was found, or it cannot be continued.
        KitError: see `launch`.
    """
    engine = reach(host, reference, workspace)
    name = cluster_name(reference, workspace, engine.clusters())
    return _go_on(host, engine, name, workspace, view, Caller.SHELL, keep=keep, leaves=False)


def wait(
    host: Host,
    reference: str,
    workspace: Workspace,
    view: View,
    *,
    keep: Keep,
    caller: Caller = Caller.SHELL,
) -> Outcome:
    """Wait for the end of a cluster and return its outcome; watch it if no other process does.

    On an interrupt the cluster is left as it is. Arguments and errors are those of `attach`, but
    another process may watch the cluster.
    """
    engine = reach(host, reference, workspace)
    name = cluster_name(reference, workspace, engine.clusters())
    while True:
        try:
            return _go_on(host, engine, name, workspace, view, caller, keep=keep, leaves=True)
        except Watched:
            host.clock.sleep(WAIT_POLL_S)


def is_watched(host: Host, reference: str, workspace: Workspace) -> bool:
    """Whether a process watches the cluster; False if the engine does not answer."""
    try:
        engine = reach(host, reference, workspace)
        return is_claimed(host, engine, cluster_name(reference, workspace, engine.clusters()))
    except KitError:
        return False


def _go_on(
    host: Host,
    engine: Engine,
    name: str,
    workspace: Workspace,
    view: View,
    caller: Caller,
    *,
    keep: Keep,
    leaves: bool,
) -> Outcome:
    runs = _runs(engine, name, workspace)
    with Recording() as log, claim(host, engine, name, runs):
        containers = engine.containers(name)
        directory = run_of(containers) if containers else newest_run_directory(runs)
        record = read_record(directory) if directory else None
        outcome = read_outcome(directory, record.id if record else "") if directory else None
        if outcome is not None and not (containers and outcome.reason == Reason.ENGINE):
            view.phase(f"{name} has ended already")
            return outcome
        if directory is None or record is None or not containers:
            raise _nothing_there(name, directory)
        run = _launch(host, engine, workspace, view, directory, record, keep=keep)
        log.keep_in(directory.path, masker(values_of(record.cluster, containers)))
        return join(replace(run, caller=caller), leaves=leaves)


def _runs(engine: Engine, name: str, workspace: Workspace) -> Path:
    """The folder of a cluster's runs, which may be in another workspace.

    Raises:
        UsageError: the cluster was not started by `up`.
        HostError: another user has started it.
    """
    containers = engine.containers(name)
    if not containers:
        return workspace.runs(name)
    run = run_of(containers)
    run.refuse_closed()
    if not run.record.exists():
        raise UsageError(
            f"the cluster {name} was not started by `cluster-kit up`: {run.record} was not found",
            f"`cluster-kit status {name}` and `cluster-kit logs {name} --follow` show it, "
            f"`cluster-kit down {name}` removes it",
        )
    return run.path.parent


def _launch(
    host: Host,
    engine: Engine,
    workspace: Workspace,
    view: View,
    directory: RunDirectory,
    record: Record,
    *,
    keep: Keep,
) -> Run:
    clock = host.clock
    timings = Stopwatch(clock, record.timings_s, record.began.seconds(clock), clock.time())
    view.count_from(timings.began)
    return Run(
        host=host,
        cluster=record.cluster,
        workspace=workspace,
        view=view,
        engine=engine,
        platform=platform_of(record.cluster.engine),
        timings=timings,
        directory=directory,
        since=record.since,
        id=record.id,
        sizes=record.sizes,
        keep=keep,
        followed=Followed(host.clock),
    )


def _nothing_there(name: str, directory: RunDirectory | None) -> UsageError:
    newest = f", and {directory.path} has no verdict" if directory else ""
    return UsageError(
        f"no container of the cluster {name} is there{newest}",
        f"start it with `cluster-kit up {name}`",
    )
