"""Runs a cluster from its manifest to its verdict: plan, check the host, start, watch, conclude."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from cluster_kit.errors import DeadlinePassed, EngineError, ManifestError, TrainingFailed
from cluster_kit.host import Host
from cluster_kit.manifest.load import Loaded, find
from cluster_kit.observe.listener import Listener
from cluster_kit.observe.logs import Followed
from cluster_kit.observe.progress import sizes
from cluster_kit.observe.reconcile import missed
from cluster_kit.observe.state import RunState
from cluster_kit.observe.task_view import State
from cluster_kit.platforms.engine import Engine
from cluster_kit.platforms.platform import SidecarUnready, load, platform_of
from cluster_kit.programs.catalog import PROGRAMS
from cluster_kit.programs.resolve import find_dockerfile
from cluster_kit.resolved import LOOPBACK, Cluster, Task
from cluster_kit.run import companions, run_directory, start
from cluster_kit.run.cluster_lock import claim
from cluster_kit.run.conclude import conclude, fail
from cluster_kit.run.data_step import ensure_data
from cluster_kit.run.doctor import refuse_if_unfit
from cluster_kit.run.known_secrets import values_of
from cluster_kit.run.outcome import Outcome
from cluster_kit.run.prepare import Prepared, check_arguments, prepare_locked, read
from cluster_kit.run.recovery import Absence
from cluster_kit.run.request import Request
from cluster_kit.run.run import (
    NOBODY,
    Keep,
    Nobody,
    Observer,
    Reached,
    Run,
    Stopwatch,
    Superseded,
)
from cluster_kit.run.run_directory import read_events, save_events
from cluster_kit.run.start import refuse_if_not_shared
from cluster_kit.run.verdict import Ending, unready
from cluster_kit.run.watch import Watch, goes_on
from cluster_kit.show.view import View
from cluster_kit.util.changes import Watched
from cluster_kit.util.debug_log import Recording
from cluster_kit.util.masking import masker
from cluster_kit.util.paths import seen_from
from cluster_kit.util.terminal import counted
from cluster_kit.workspace import RunDirectory, Workspace, last_run, new_id, new_run


def task_of(cluster: Cluster) -> Task | None:
    """The task whose program waits for a debugger; None if no task does."""
    return next((task for task in cluster.tasks if task.debug), None)


def words(task: Task) -> str:
    """The sentence that is printed for a task that waits for a debugger."""
    return (
        f"{task.name} waits for a debugger on {LOOPBACK}:{task.debug}; deadlines are off, and "
        "Ctrl-C ends the run"
    )


Start = Callable[[], Cluster]
"""Starts the containers, and returns the cluster that was started."""


def attend(run: Run, start: Start) -> Outcome:
    """Start a run, watch it to its end, and conclude it; errors are raised afterwards."""
    with closing(Listener(run.host.clock, run.engine, run.name, run.since, run=run.id)) as listener:
        return _attend(run, start, listener)


def join(run: Run, *, leaves: bool) -> Outcome:
    """Watch a run that another process has started, to its end, and conclude it.

    Args:
        leaves: on an interrupt, raise KeyboardInterrupt instead of ending the run.
    """
    known = read_events(run.directory, run.since)
    listener = Listener(
        run.host.clock, run.engine, run.name, run.since, run=run.id, known=known, joins=True
    )
    with closing(listener):
        return _attend(run, lambda: run.cluster, listener, leaves=leaves)


def begin(run: Run, start: Start) -> Cluster:
    """Start a run that is not watched, and return the cluster that was started.

    A run that fails to start is concluded.
    """
    seen = RunState.of(run.cluster)
    try:
        cluster = start()
        _note_starts(run, cluster)
        companions.begin(run, cluster)
        if waiting := task_of(cluster):
            run.view.phase(words(waiting))
        return cluster
    except KeyboardInterrupt:
        _say_interrupted(run)
        conclude(run, run.cluster, seen, "interrupted")
        raise
    except SidecarUnready as error:
        outcome = _unready(replace(run, keep=False), run.cluster, error)
        kind = TrainingFailed if outcome.exit_code == TrainingFailed.exit_code else DeadlinePassed
        failed = kind(outcome.message, outcome.cure)
        failed.run = outcome.run
        raise failed from None
    except BaseException as error:
        run.host.interrupts.ignore()
        fail(run, run.cluster, seen, error)
        raise


def _unready(run: Run, cluster: Cluster, error: SidecarUnready) -> Outcome:
    """Conclude a run of which no task was started, since a sidecar was not ready."""
    run.host.interrupts.ignore()
    verdict = unready(cluster, error.container, error.ended)
    return conclude(run, cluster, RunState.of(cluster), "sidecar", verdict)


def _note_starts(run: Run, cluster: Cluster) -> None:
    """Save the start times of the containers of a run that is not watched.

    When a later command continues the run, the engine may have dropped these events.
    """
    with contextlib.suppress(EngineError, OSError):  # `attach` asks the engine again
        events = missed(RunState.of(cluster), run.containers(), run.host.clock.time())
        save_events(run.directory, events)


def _attend(run: Run, start: Start, listener: Listener, *, leaves: bool = False) -> Outcome:
    cluster, now = run.cluster, run.host.clock.time()
    joined_at = now if listener.is_behind else None
    watch: Watch | None = None
    ending: Ending = "interrupted"
    try:
        cluster = start()
        watch = _watch(run, cluster, listener)
        places = f"{_published(cluster)}{companions.begin(run, cluster)}"
        run.view.phase(f"{goes_on(run, cluster)}{places}")
        if waiting := task_of(cluster):
            run.view.phase(words(waiting))
        _follow(run, joined_at)
        ending = watch.until_ended(lambda seen: _show(run, cluster, seen))
        run.host.interrupts.ignore()
    except KeyboardInterrupt:
        if leaves:
            raise
        _say_interrupted(run)
    except Reached:
        raise
    except Superseded:
        run.view.phase("its files have changed: stopping the containers")
        ending = "superseded"
    except SidecarUnready as error:
        return _unready(run, cluster, error)
    except BaseException as error:
        run.host.interrupts.ignore()
        fail(run, cluster, _seen(watch, cluster), error)
        raise
    return conclude(run, cluster, _seen(watch, cluster), ending)


def _seen(watch: Watch | None, cluster: Cluster) -> RunState:
    """The state so far, an empty one if the cluster did not start."""
    return watch.seen if watch else RunState.of(cluster)


def _published(cluster: Cluster) -> str:
    """The published ports, for the line `running …`; "" if there are none."""
    return "".join(
        f", {name}:{port.container} at {LOOPBACK}:{port.host}" for name, port in cluster.ports
    )


def _show(run: Run, cluster: Cluster, seen: RunState) -> None:
    run.view.update(seen)
    run.followed.settle()
    run.observer.observe(run.engine, cluster, seen)


def _watch(run: Run, cluster: Cluster, listener: Listener) -> Watch:
    def back() -> None:
        _follow(run, run.host.clock.time())

    title = run.platform.engine_title
    absence = Absence(run.host.clock, cluster.deadlines.engine, run.view.phase, back, title)
    return Watch(run, cluster, listener, absence, back)


def _follow(run: Run, since: float | None) -> None:
    """Pass new log lines of the leader, the evaluators and a debugged task to the view."""
    tasks = {run.cluster.leader.name, *(task.name for task in run.cluster.evaluators)}
    tasks |= {task.name for task in run.cluster.tasks if task.debug}
    containers = [c for c in run.containers() if c.name in tasks]
    mask = masker(values_of(run.cluster, containers))
    log = run.view.log
    run.followed.follow(run.engine, containers, lambda task, line: log(task, mask(line)), since)


def _say_interrupted(run: Run) -> None:
    run.view.phase("interrupted: stopping the containers, saving the evidence and cleaning up")


_LOG = logging.getLogger(__name__)


def launch(
    host: Host,
    request: Request,
    workspace: Workspace,
    view: View,
    *,
    keep: Keep,
    resume: bool,
    observer: Observer = NOBODY,
) -> Outcome:
    """Run a cluster to its end and return its outcome, which is also saved with the run.

    After the start, logs and events are always saved, and everything is removed unless `keep`.

    Args:
        host: the machine of the run.
        keep: keep the containers after the end; "failed": only if the run fails.
        resume: continue in the directory of the last run.
        observer: receives the plan, and each state that the view receives.
    Raises:
        KitError: the run failed before a verdict: an invalid manifest, an unfit host, a lost
        engine. KeyboardInterrupt: the run was interrupted before anything was started.
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


class Milestone(StrEnum):
    """What a run has reached when `up --detach --ready` returns."""

    SERVERS = "servers"
    """The leader reports that all servers answer."""
    STEP = "step"
    """The first step was reported by a task, or counted by the kit."""

    def is_reached(self, seen: RunState) -> bool:
        leader = seen.tasks[seen.leader]
        if self is Milestone.SERVERS:
            return leader.state in (State.READY, State.TRAINING, State.SCORING)
        return leader.state is State.TRAINING


class UntilReached(Nobody):
    """Ends the watching of a run at a milestone; `cluster` is the one that was started."""

    def __init__(self, milestone: Milestone) -> None:
        self._milestone = milestone
        self.cluster: Cluster | None = None

    def observe(self, engine: Engine, cluster: Cluster, seen: RunState) -> None:
        if self._milestone.is_reached(seen):
            self.cluster = cluster
            raise Reached


def launch_until(
    host: Host,
    request: Request,
    workspace: Workspace,
    view: View,
    milestone: Milestone,
    *,
    resume: bool,
) -> Run | Outcome:
    """Start a cluster, and return its run as soon as it has reached the milestone.

    `attach` continues it. A run that ends before that is concluded as by `launch`, and its outcome
    is returned. Arguments and errors are those of `launch`.
    """
    until = UntilReached(milestone)
    with (
        Recording() as log,
        _ready(host, request, workspace, view, until, log, keep=False, resume=resume) as (run, up),
    ):
        try:
            return attend(run, up)
        except Reached:
            return replace(run, cluster=until.cluster or run.cluster)


@contextlib.contextmanager
def _ready(
    host: Host,
    request: Request,
    workspace: Workspace,
    view: View,
    observer: Observer,
    log: Recording,
    *,
    keep: Keep,
    resume: bool,
) -> Iterator[tuple[Run, Start]]:
    """A prepared run, and the function that starts its containers; see `launch`."""
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
            try:
                start.ensure_image(host, cluster, workspace, view)
            except ManifestError as error:  # the value can be from the command line
                loaded = prepared.manifest
                raise loaded.command_line.error(loaded.path, error.problems) from None
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
            is_new=not resume,
            followed=Followed(host.clock),
        )

        yield run, lambda: _started(run, prepared, text)


def _of_this_host(host: Host, request: Request, loaded: Loaded) -> Engine | None:
    """The Docker engine of this host; None if it does not answer and is not needed.

    Raises:
        UsageError: the kit cannot start jobs on this platform.
    """
    platform = platform_of(loaded.manifest.engine)
    if error := platform.not_run(request.manifest):
        raise error
    return host.connect() if platform.by_docker else host.engine_or_none()


def _started(run: Run, prepared: Prepared, text: str) -> Cluster:
    """Fetch the data if necessary, start the containers, and return the cluster as started."""
    if run.cluster.fetch is not None:
        with run.timings.step("data"):
            ensure_data(run.host, run.cluster, run.view, run.caller)
    continued = "" if run.is_new else f" to continue {run.name}/{run.directory.path.name}"
    run.view.phase(f"{_starting(len(run.cluster.tasks) + len(run.cluster.sidecars))}{continued}")
    return start.up(run, prepared, text)


def _directory(host: Host, runs: Path, prepared: Prepared, *, resume: bool) -> RunDirectory:
    refuse_if_not_shared(host, prepared.facts.kind, prepared.cluster.image, runs)
    with run_directory.writing(runs):
        return (
            last_run(runs) if resume else new_run(runs, datetime.fromtimestamp(host.clock.time()))
        )


def _starting(count: int) -> str:
    return f"starting {counted(count, 'container')}"


def files_of(request: Request, workspace: Workspace) -> Watched:
    """The files to watch: manifest, requirements, and the program's folder, which is mounted.

    Files that runs write are left out. Invalid and missing files are watched, too.

    Raises:
        UsageError: the manifest was not found.
    """
    path = find(request.manifest, workspace.manifests).resolve()
    files, folders = [path], []
    ignored = [workspace.root / "runs", workspace.root / "portable"]
    try:
        manifest = load(path, request.overrides).manifest
    except ManifestError:
        return Watched((), tuple(files))
    ignored.append(workspace.generated(manifest.name).parent)
    if manifest.program not in PROGRAMS:
        program = seen_from(path.parent, manifest.program).resolve()
        folders += [program.parent] if program.parent.is_dir() else []
    dockerfile, _ = find_dockerfile(manifest.build, path.parent)
    if dockerfile is not None:
        folders.append(Path(dockerfile.context))
    if manifest.requirements:
        files.append(seen_from(path.parent, manifest.requirements).resolve())
    return Watched(tuple(folders), tuple(files), tuple(folder.resolve() for folder in ignored))


class UntilChanged(Nobody):
    """Ends a run as soon as its files change.

    Args:
        changed: returns what has changed since it was last called.
    """

    def __init__(self, changed: Callable[[], Sequence[Path]]) -> None:
        self._changed = changed
        self.seen: tuple[Path, ...] = ()
        """The changed files that ended the run."""

    def observe(self, engine: Engine, cluster: Cluster, seen: RunState) -> None:
        self.seen = tuple(self._changed())
        if self.seen:
            raise Superseded
