"""Commands that a person runs inside a task's container: which container, and how."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Sequence

from cluster_kit.errors import EngineError, HostError, Interrupted, UsageError
from cluster_kit.host import Host
from cluster_kit.observe.task_view import State
from cluster_kit.platforms.engine import SIDECAR, Container, Engine, reaching
from cluster_kit.resolved import OUTPUT
from cluster_kit.util.nearest import proposal

SHELL = ("sh", "-c", "if command -v bash >/dev/null; then exec bash; else exec sh; fi")
KILL_ALL = "kill -9 -1"
"""-1: every process but the first one, which ends with its child, and the shell itself."""
CRASH = ("sh", "-c", KILL_ALL)
MARK = "CLUSTER_KIT_EXEC"
INTERRUPT = (
    "import os, signal, sys\n"
    "for pid in filter(str.isdigit, os.listdir('/proc')):\n"
    "    try:\n"
    "        if sys.argv[1].encode() in open(f'/proc/{pid}/environ', 'rb').read():\n"
    "            os.kill(int(pid), signal.SIGINT)\n"
    "    except OSError:\n"
    "        pass\n"
)
"""Interrupts every process that has the mark: the engine leaves them to themselves."""
PATIENCE_S = 2


def task_of(engine: Engine, cluster: str, task: str) -> Container:
    """The container of a task of a cluster that is up.

    Raises:
        HostError: the cluster is not up.
        UsageError: it has no such task.
    """
    containers = [*engine.containers(cluster), *engine.sidecars(cluster)]
    known = [container.name for container in containers]
    if task in known:
        return containers[known.index(task)]
    if task in engine.clusters():
        raise UsageError(
            f"{task} is a cluster, not a task", f"name a task, and the cluster by `--name {task}`"
        )
    if not containers:
        raise HostError(
            f"no task of {cluster} is running",
            f"`cluster-kit up {cluster}` runs it, `cluster-kit status` shows what is up",
        )
    raise UsageError(f"{cluster} has no task {task}", proposal(task, known))


def refuse_idle(container: Container) -> None:
    """Raise HostError if no command can be run in this container now."""
    where = f"{container.name} of {container.cluster}"
    state = State.of_engine(container.state)
    if state is State.ENDED:
        raise HostError(
            f"{where} has ended (exit code {container.exit_code}): no command can be run in it",
            f"`cluster-kit logs {container.cluster} {container.name}` shows its log; "
            f"`cluster-kit restart {container.name} --name {container.cluster}` starts it again",
        )
    if state is State.PAUSED:
        raise HostError(
            f"{where} is paused: no command can be run in it",
            f"`docker unpause {container.cluster}-{container.name}` lets it continue",
        )
    if state is not State.RUNNING:
        raise HostError(
            f"{where} is {state}: no command can be run in it",
            f"run it again when `cluster-kit status {container.cluster}` shows that it runs",
        )


def run_inside(
    host: Host, engine: Engine, container: Container, command: Sequence[str], *, terminal: bool
) -> int:
    """Run a command inside a running container, on our own stdin and stdout; its exit code.

    It has the task's variables and its user, and begins in the output directory.

    Args:
        terminal: give it a terminal of its own, which is connected to ours.
    Raises:
        Interrupted: Ctrl-C; the command in the container is interrupted, too.
    """
    refuse_idle(container)
    mark = f"{MARK}={secrets.token_hex(8)}"
    # With a terminal, Ctrl-C is a character that goes to the command.
    options = ["--interactive", *(["--tty"] if terminal else []), "--env", mark]
    options += ["--workdir", OUTPUT] if container.role != SIDECAR else []
    options += [*(["--user", container.user] if container.user else [])]
    try:
        return host.processes.hand_over(["docker", "exec", *options, container.id, *command])
    except KeyboardInterrupt:
        with contextlib.suppress(EngineError):
            reaching(engine).ask(container.id, ("python3", "-ISc", INTERRUPT, mark), PATIENCE_S)
        raise Interrupted(f"interrupted: the command in {container.name}, too") from None
