"""What a page may do to a cluster that is up, if it was started with `--allow-control`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cluster_kit.errors import HostError, UsageError
from cluster_kit.host import Host
from cluster_kit.observe import user_requests
from cluster_kit.observe.task_view import State
from cluster_kit.platforms.engine import Container, Engine, reaching
from cluster_kit.run import lifecycle
from cluster_kit.run.task_exec import CRASH, refuse_idle, task_of
from cluster_kit.util.nearest import proposal


def _stop(host: Host, engine: Engine, container: Container) -> str:
    _note(host, container, user_requests.END)
    engine.end(container.id)
    return "stopped: `restart` starts it again"


def _kill(host: Host, engine: Engine, container: Container) -> str:
    refuse_idle(container)
    _note(host, container, user_requests.KILL)
    reaching(engine).execute(container.id, CRASH)
    return "killed, as if it had crashed"


def _freeze(host: Host, engine: Engine, container: Container) -> str:
    if container.state != State.RUNNING:
        raise HostError(f"{container.name} is {container.state}: only one that runs can be frozen")
    _note(host, container, user_requests.FREEZE)
    reaching(engine).freeze(container.id)
    return "frozen: `thaw` lets it continue"


def _thaw(host: Host, engine: Engine, container: Container) -> str:
    if container.state != State.PAUSED:
        raise HostError(f"{container.name} is not frozen")
    _note(host, container, user_requests.THAW)
    reaching(engine).thaw(container.id)
    return "goes on"


def _note(host: Host, container: Container, what: str) -> None:
    """Say what is done before it is done: the report shows it as a person's."""
    if container.output:  # a sidecar has none
        lifecycle.note(host, [container], what, [container.name])


def _restart(host: Host, engine: Engine, container: Container) -> str:
    names = lifecycle.restart(host, engine, container)
    return "restarted" if len(names) == 1 else f"restarted, and with it {', '.join(names)}"


OF_TASK: Mapping[str, Callable[[Host, Engine, Container], str]]
OF_TASK = {"stop": _stop, "kill": _kill, "freeze": _freeze, "thaw": _thaw, "restart": _restart}
OF_CLUSTER: Mapping[str, Callable[[Host, Engine, str], bool]]
OF_CLUSTER = {"stop": lifecycle.stop, "start": lifecycle.start}


def to_task(host: Host, engine: Engine, cluster: str, task: str, verb: str) -> str:
    """Do something to a task; a sentence that says what was done.

    Raises:
        UsageError: it is not known what, or to which task.
        HostError: the task is in no state for it.
        EngineError: the engine refuses, or does not answer.
    """
    if verb not in OF_TASK:
        raise UsageError(f"{verb} was not found", proposal(verb, list(OF_TASK)))
    return f"{task}: {OF_TASK[verb](host, engine, task_of(engine, cluster, task))}"


def to_cluster(host: Host, engine: Engine, cluster: str, verb: str) -> str:
    """The same for all tasks of a cluster."""
    if verb not in OF_CLUSTER:
        raise UsageError(f"{verb} was not found", proposal(verb, list(OF_CLUSTER)))
    done = OF_CLUSTER[verb](host, engine, cluster)
    return f"{cluster}: {'done' if done else 'it was so already'}"
