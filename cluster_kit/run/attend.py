"""What is told of a run whose program waits for a debugger. Pure."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import closing

from cluster_kit.errors import EngineError
from cluster_kit.observe.listener import Listener
from cluster_kit.observe.reconcile import missed
from cluster_kit.observe.state import RunState
from cluster_kit.resolved import LOOPBACK, Cluster, Task
from cluster_kit.run import companions
from cluster_kit.run.conclude import conclude, fail
from cluster_kit.run.known_secrets import values_of
from cluster_kit.run.outcome import Outcome
from cluster_kit.run.recovery import Absence
from cluster_kit.run.run import Run, Superseded
from cluster_kit.run.run_directory import read_events, save_events
from cluster_kit.run.verdict import Ending
from cluster_kit.run.watch import Watch
from cluster_kit.util.masking import masker


def task_of(cluster: Cluster) -> Task | None:
    """The task whose program waits for a debugger, None if none does."""
    return next((task for task in cluster.tasks if task.debug), None)


def words(task: Task) -> str:
    """A sentence for a person, once the containers have started."""
    return (
        f"{task.name} waits for a debugger on {LOOPBACK}:{task.debug}; no deadline counts, and "
        "Ctrl-C ends it"
    )


Start = Callable[[], Cluster]
"""Starts the containers, and returns the cluster that was started."""


def attend(run: Run, start: Start) -> Outcome:
    """Start a run, watch it to its end and conclude it; an error is raised after that."""
    with closing(Listener(run.host.clock, run.engine, run.name, run.since, run=run.id)) as listener:
        return _attend(run, start, listener)


def join(run: Run, *, leaves: bool) -> Outcome:
    """Go on watching a run that was started before, to its end, and conclude it.

    Args:
        leaves: on an interrupt, raise KeyboardInterrupt and leave the run as it is.
    """
    known = read_events(run.directory, run.since)
    listener = Listener(
        run.host.clock, run.engine, run.name, run.since, run=run.id, known=known, joins=True
    )
    with closing(listener):
        return _attend(run, lambda: run.cluster, listener, leaves=leaves)


def begin(run: Run, start: Start) -> Cluster:
    """Start a run that nobody watches, and return the cluster that was started.

    One that fails to start is concluded.
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
    except BaseException as error:
        run.host.interrupts.ignore()
        fail(run, run.cluster, seen, error)
        raise


def _note_starts(run: Run, cluster: Cluster) -> None:
    """Save when the containers of a run that nobody watches have started.

    The engine may have forgotten it by the time that somebody asks.
    """
    with contextlib.suppress(EngineError, OSError):  # who goes on with the run asks again
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
        beside = f"{_published(cluster)}{companions.begin(run, cluster)}"
        run.view.phase(f"running {cluster.name} on {run.platform.place(cluster)}{beside}")
        if waiting := task_of(cluster):
            run.view.phase(words(waiting))
        _follow(run, joined_at)
        ending = watch.until_ended(lambda seen: _show(run, cluster, seen))
        run.host.interrupts.ignore()
    except KeyboardInterrupt:
        if leaves:
            raise
        _say_interrupted(run)
    except Superseded:
        run.view.phase("its files have changed: stopping the containers")
        ending = "superseded"
    except BaseException as error:
        run.host.interrupts.ignore()
        fail(run, cluster, _seen(watch, cluster), error)
        raise
    return conclude(run, cluster, _seen(watch, cluster), ending)


def _seen(watch: Watch | None, cluster: Cluster) -> RunState:
    """The state so far; nothing has been seen of a cluster that did not start."""
    return watch.seen if watch else RunState.of(cluster)


def _published(cluster: Cluster) -> str:
    """What to say of published ports; "" if there are none."""
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
    """Pass log lines of the leader, the evaluators and a debugged task to the view as they come."""
    tasks = {run.cluster.leader.name, *(task.name for task in run.cluster.evaluators)}
    tasks |= {task.name for task in run.cluster.tasks if task.debug}
    containers = [c for c in run.containers() if c.name in tasks]
    mask = masker(values_of(run.cluster, containers))
    log = run.view.log
    run.followed.follow(run.engine, containers, lambda task, line: log(task, mask(line)), since)


def _say_interrupted(run: Run) -> None:
    run.view.phase("interrupted: stopping the containers, saving the evidence and cleaning up")
