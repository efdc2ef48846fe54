"""The containers of a cluster that runs, by the names of its tasks."""

from __future__ import annotations

from cluster_kit.engine.containers import Container
from cluster_kit.engine.interface import Engine
from cluster_kit.errors import UsageError
from cluster_kit.observe.task_view import State
from cluster_kit.run.context import Launch
from cluster_kit.util.nearest import proposal


def found(engine: Engine, run: Launch, task: str) -> Container:
    """The container of a task; raises UsageError."""
    for container in engine.containers(run.name, run.id):
        if container.name == task:
            return container
    raise unknown(run, task)


def running(engine: Engine, run: Launch, task: str) -> Container:
    """The same, if its processes run; raises UsageError."""
    container = found(engine, run, task)
    if container.state == State.PAUSED:
        raise UsageError(f"{task} is frozen", f'thaw("{task}") lets it go on')
    if container.state != State.RUNNING:
        raise UsageError(
            f"{task} does not run: it is {state(container)}",
            f'logs("{task}") has what it said last',
        )
    return container


def unknown(run: Launch, task: str) -> UsageError:
    """Why a task of this name has no container."""
    known = [one.name for one in run.cluster.tasks]
    if task in known:
        return UsageError(
            f"the container of {task} is gone: {run.name} has been removed",
            f"logs and outcome.json are in {run.directory.path}",
        )
    return UsageError(f"{run.name} has no task {task}", proposal(task, known))


def state(container: Container) -> str:
    """For messages: `exited, exit code 137`."""
    if container.exit_code is None:
        return container.state
    return f"{container.state}, exit code {container.exit_code}"
