"""One trace of all tasks of a cluster that is up: asked for in one container, kept in the run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster_kit.errors import EngineError, HostError, UsageError
from cluster_kit.observe.task_view import State
from cluster_kit.platforms.container import START
from cluster_kit.platforms.engine import Container, Engine, reaching
from cluster_kit.report.profiles import checked
from cluster_kit.roles import ROLES
from cluster_kit.util.nearest import proposal

COMMAND = (*START, "profile")
MOST_S = 60.0
SAVES_S = 120
"""Traces are saved and put together after the time that is traced; many tasks share one CPU."""
STARTING = ("created", "restarting")


@dataclass(frozen=True)
class Profile:
    """A trace that was taken: the facts of its profile.json, and the directory that has both."""

    facts: Mapping[str, Any]
    folder: Path

    @property
    def trace(self) -> Path:
        return self.folder / str(self.facts["trace"])


def refuse_seconds(seconds: float) -> None:
    """Raise UsageError if a profile cannot be so long."""
    if not 0 < seconds <= MOST_S:
        raise UsageError(
            f"--seconds {seconds:g}: a profile takes more than 0 and at most {MOST_S:g} seconds",
            "2 show some steps of most programs: --seconds 2",
        )


def profiled_tasks(
    containers: Sequence[Container], cluster: str, tasks: Sequence[str]
) -> list[str]:
    """The tasks to trace: these, or all that can have a TensorFlow server.

    Raises:
        HostError: the cluster is not up.
        UsageError: it has no such task, or that one has no server.
    """
    if not containers:
        raise HostError(
            f"no task of {cluster} is running",
            f"`cluster-kit up {cluster}` runs it; profile it while it trains",
        )
    known = [one.name for one in containers if not ROLES[one.role].sidecar]
    for task in tasks:
        if task in known:
            continue
        if task in (one.name for one in containers):
            raise UsageError(
                f"{task} has no TensorFlow server that could trace it", f"one of {', '.join(known)}"
            )
        raise UsageError(f"{cluster} has no task {task}", proposal(task, known))
    return list(dict.fromkeys(tasks)) or known


def profile(engine: Engine, cluster: str, seconds: float, tasks: Sequence[str]) -> Profile:
    """Trace tasks of a cluster that is up, all without any; takes `seconds` and some more.

    Raises:
        HostError: it is not up, or no task could be traced.
        UsageError: the seconds or a task cannot be.
        EngineError: the container that was asked has not answered.
    """
    refuse_seconds(seconds)
    containers = engine.containers(cluster)
    wanted = profiled_tasks(containers, cluster, tasks)
    asked = _who_is_asked(containers, cluster)
    command = (*COMMAND, f"{seconds:g}", *wanted)
    said = reaching(engine).ask(asked.id, command, round(seconds) + SAVES_S)
    facts = _facts(said)
    if facts is None:
        raise _refusal(asked, said)
    return Profile(facts, Path(asked.output) / str(facts["folder"]))


def _who_is_asked(containers: Sequence[Container], cluster: str) -> Container:
    """The leader if it runs, else another task that does."""
    running = [
        one
        for one in containers
        if State.of_engine(one.state) is State.RUNNING and not ROLES[one.role].sidecar
    ]
    if not running:
        raise HostError(
            f"no task of {cluster} is running: nothing can be traced",
            f"`cluster-kit status {cluster}` shows what its tasks do",
        )
    return next((one for one in running if one.leader), running[0])


def _facts(said: str) -> dict[str, Any] | None:
    """The line of JSON in what was printed; None if there is none."""
    for line in reversed(said.splitlines()):
        if line.startswith("{"):
            try:
                return checked(json.loads(line))
            except (ValueError, RecursionError):
                return None
    return None


def _refusal(asked: Container, said: str) -> HostError | EngineError:
    """The error for what the container that was asked has said instead."""
    errors = [line for line in said.splitlines() if line.startswith("error: ")]
    if errors:
        return HostError(
            errors[-1].removeprefix("error: "),
            f"`cluster-kit status {asked.cluster}` shows whether they train; a program that has "
            "not begun has no server yet: ask again when it makes steps",
        )
    tail = "\n".join(said.splitlines()[-5:]) or "nothing in time"
    return EngineError(
        f"{asked.name} was asked for a profile, and answered:\n{tail}",
        f"`cluster-kit logs {asked.cluster} {asked.name}` shows what it does",
    )
