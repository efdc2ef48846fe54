"""A cluster in which the program of one task waits for a debugger. Pure."""

from __future__ import annotations

from dataclasses import replace

from cluster_kit.contract.times import DEBUGGER_PORT
from cluster_kit.errors import UsageError
from cluster_kit.parts import Mount, Port
from cluster_kit.resolved import Cluster, Task
from cluster_kit.util.nearest import proposal

TARGET = "/debugger"
PATIENCE_S = 7 * 24 * 3600.0
"""Stands for: a person may look for as long as they like."""
HIGHEST = 65535


def debugged(cluster: Cluster, asked: str, debugger: str) -> Cluster:
    """The cluster, with a debugger in the task that is asked for: `chief-0`, or `chief-0:5680`.

    Nothing that a person at a breakpoint holds up ends the job: no deadline of the job, of silence,
    of progress or of the evaluator.

    Args:
        debugger: the directory of this host that holds debugpy.
    Raises:
        UsageError: there is no such task, it runs no program, or the port cannot be published.
    """
    name, colon, digits = asked.partition(":")
    task = _task(cluster, name)
    port = DEBUGGER_PORT
    if colon:
        port = int(digits) if digits.isascii() and digits.isdecimal() else 0
    if not 1 <= port <= HIGHEST:
        raise UsageError(f"--debug {asked}: the port must be 1 to {HIGHEST}", f"--debug {name}")
    _refuse_port(cluster, task, port)
    with_debugger = replace(
        task,
        debug=port,
        ports=(*task.ports, Port(port, DEBUGGER_PORT)),
        mounts=(*task.mounts, Mount(debugger, TARGET)),
    )
    deadlines = replace(
        cluster.deadlines, job=PATIENCE_S, evaluator_grace=PATIENCE_S, silent=0.0, stall=0.0
    )
    tasks = tuple(with_debugger if one is task else one for one in cluster.tasks)
    return replace(cluster, tasks=tasks, deadlines=deadlines)


def _task(cluster: Cluster, name: str) -> Task:
    found = next((task for task in cluster.tasks if task.name == name), None)
    programs = [task.name for task in cluster.tasks if not task.serves]
    if found is None:
        raise UsageError(f"--debug: task {name} was not found", proposal(name, programs))
    if found.serves:
        raise UsageError(
            f"--debug: {name} runs a TensorFlow server, no program",
            f"these run one: {', '.join(programs)}. What a coordinator sends to a worker is run by "
            "TensorFlow, where no Python debugger can stop",
        )
    return found


def _refuse_port(cluster: Cluster, task: Task, port: int) -> None:
    if cluster.internal:
        raise UsageError(
            "--debug needs a published port, and an internal network publishes none",
            "run it with `--set network.internal=false`",
        )
    for name, published in cluster.ports:
        if published.host == port:
            raise UsageError(
                f"--debug: the port {port} of this host is published for {name} already",
                f"choose another: --debug {task.name}:{port + 1}",
            )
        if (name, published.container) == (task.name, DEBUGGER_PORT):
            raise UsageError(
                f"--debug: {name} publishes its port {DEBUGGER_PORT} already, "
                "at which the debugger listens",
                "take it out of `ports`",
            )
