"""Restarts, stops and starts tasks of a running cluster when a user requests it.

Containers, addresses and everything in /output stay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cluster_kit.errors import EngineError, HostError
from cluster_kit.host import Host
from cluster_kit.observe import user_requests
from cluster_kit.observe.task_view import State
from cluster_kit.platforms.engine import SIDECAR, Container, Engine, gpus_taken
from cluster_kit.run import run_directory
from cluster_kit.workspace import RunDirectory

AT_ONCE = 8


def restart(
    host: Host, engine: Engine, container: Container, *, from_page: bool = False
) -> tuple[str, ...]:
    """Restart a task with the same name and address; returns the tasks that were restarted.

    The job ends with its leader, so restarting the leader restarts all tasks.

    Raises:
        HostError: the cluster is stopped, or its job has ended for good.
        EngineError: the engine refuses, or does not answer.
    """
    containers = engine.containers(container.cluster)
    if container.role == SIDECAR:
        engine.end(container.id)
        engine.start_again(container.id)
        return (container.name,)
    _refuse_ended(containers, f"`cluster-kit restart {container.name}`")
    if is_stopped(containers):
        raise HostError(
            f"{container.cluster} is stopped", f"`cluster-kit start {container.cluster}` goes on"
        )
    chosen = containers if container.leader else [container]
    tasks = [one.name for one in chosen]
    note(host, containers, user_requests.RESTART, tasks, from_page=from_page)
    if container.leader:
        engine.stop(container.cluster)
        _each(engine.start_again, engine.sidecars(container.cluster))
    else:
        engine.end(container.id)
    _each(engine.start_again, chosen)
    return tuple(tasks)


def stop(host: Host, engine: Engine, cluster: str, *, from_page: bool = False) -> bool:
    """Stop all tasks of a cluster until `start`; False if they are stopped already.

    Programs get the usual time to save.

    Raises:
        HostError: the cluster is not up, or its job has ended for good.
        EngineError: the engine refuses, or does not answer.
    """
    containers = _there(engine, cluster)
    if is_stopped(containers):
        return False
    _refuse_ended(containers, f"`cluster-kit stop {cluster}`")
    tasks = [one.name for one in containers]
    note(host, containers, user_requests.STOP, tasks, from_page=from_page)
    engine.stop(cluster)
    return True


def start(host: Host, engine: Engine, cluster: str) -> bool:
    """Start all tasks of a stopped cluster, with their addresses; False if they run already.

    Raises:
        HostError: the cluster is not up, its job has ended for good, or one of its GPUs is in use.
        EngineError: the engine refuses, or does not answer; the tasks are stopped again.
    """
    containers = _there(engine, cluster)
    if not is_stopped(containers):
        _refuse_ended(containers, f"`cluster-kit start {cluster}`")
        return False
    _refuse_gpus(engine, cluster, containers)
    try:
        _each(engine.start_again, engine.sidecars(cluster))
        _each(engine.start_again, containers)
    except EngineError:
        note(host, containers, user_requests.STOP, [one.name for one in containers])
        engine.stop(cluster)
        raise
    return True


def failed_tasks(engine: Engine, cluster: str) -> list[str]:
    """The tasks whose containers have ended, and not with exit code 0."""
    ended = [c for c in engine.containers(cluster) if State.of_engine(c.state) is State.ENDED]
    return [container.name for container in ended if container.exit_code]


def is_stopped(containers: Sequence[Container]) -> bool:
    """Whether a cluster is stopped, by `stop` or by a `restart` that was interrupted."""
    leader = _leader(containers)
    if leader is None or not has_ended(containers):
        return False
    requests = user_requests.of_containers(containers)
    request = user_requests.last(requests, leader.name, leader.started)
    return request is not None and request.what in user_requests.ENDS


def has_ended(containers: Sequence[Container]) -> bool:
    """Whether the leader's container has ended, and with it the job, or until `start`."""
    leader = _leader(containers)
    return leader is not None and State.of_engine(leader.state) is State.ENDED


def _leader(containers: Sequence[Container]) -> Container | None:
    return next((one for one in containers if one.leader), None)


def _there(engine: Engine, cluster: str) -> list[Container]:
    containers = engine.containers(cluster)
    if not containers:
        raise HostError(
            f"no container of the cluster {cluster} is there",
            f"start it with `cluster-kit up {cluster}`",
        )
    return containers


def _refuse_ended(containers: Sequence[Container], what: str) -> None:
    leader = _leader(containers)
    if leader is None or is_stopped(containers):
        return
    if State.of_engine(leader.state) is State.ENDED:
        name = leader.cluster
        ending = f"{leader.name} with exit code {leader.exit_code}"
        raise HostError(
            f"the job of {name} has ended ({ending}): {what} needs one that still runs",
            f"`cluster-kit attach {name}` shows how it ended, `cluster-kit down {name}` removes "
            "it, and the same `cluster-kit up` with `--resume` then continues from its last "
            "checkpoint, if it has one",
        )


def _refuse_gpus(engine: Engine, cluster: str, containers: Sequence[Container]) -> None:
    """Raise HostError if another cluster has got a GPU of a stopped cluster meanwhile."""
    taken = {gpu: other for gpu, other in gpus_taken(engine) if other != cluster}
    for container in containers:
        for gpu in container.gpus:
            if gpu in taken:
                raise HostError(
                    f"the GPU {gpu} of {container.name} is held by the cluster {taken[gpu]} now",
                    f"start it when that has ended, or `cluster-kit stop {taken[gpu]}` before",
                )


def note(
    host: Host,
    containers: Sequence[Container],
    what: str,
    tasks: Sequence[str],
    *,
    from_page: bool = False,
) -> None:
    """Record a request before it is carried out; raises HostError if the file cannot be written."""
    run = Path(containers[0].output).parent
    RunDirectory(run).refuse_closed()
    try:
        user_requests.write(run, what, tasks, host.clock.time(), from_page=from_page)
    except OSError as error:
        raise HostError(
            f"{run / user_requests.FILE} cannot be written, which tells the watching process "
            f"that a user requested it: {error.strerror}",
            run_directory.HINT,
        ) from None


def _each(do: Callable[[str], None], containers: Sequence[Container]) -> None:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(do, [one.id for one in containers]))
