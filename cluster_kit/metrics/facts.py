"""A run as it was started, and what is known of its end. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cluster_kit.cluster import Cluster
from cluster_kit.observe.task_view import State
from cluster_kit.roles import ROLES


@dataclass(frozen=True)
class TaskFacts:
    """A task as it was started; limits are None without one (cores, bytes)."""

    name: str
    role: str
    index: int
    ip: str = ""
    gpus: tuple[str, ...] = ()
    cpus: float | None = None
    memory: int | None = None


@dataclass(frozen=True)
class RunFacts:
    """A run as it was started, and its outcome.json, {} before its end.

    `since` is when its containers were started, Unix seconds. `engine` are the states of its
    containers, {} if no engine was asked. `checkpoint` is (Unix seconds, name) of the
    newest one.
    """

    cluster: str
    run: str
    tasks: tuple[TaskFacts, ...]
    leader: str = ""
    since: float | None = None
    image: str = ""
    style: str = ""
    kit: str = ""
    outcome: Mapping[str, Any] = field(default_factory=dict)
    engine: Mapping[str, State] = field(default_factory=dict)
    checkpoint: tuple[float, str] | None = None
    stragglers: frozenset[str] = frozenset()

    @property
    def over(self) -> bool:
        """Whether its containers have ended: not if they were kept."""
        return bool(self.outcome) and not self.outcome.get("kept")


def facts_of(cluster: Cluster, run: str, since: float) -> RunFacts:
    """What a run's record says of it."""
    tasks = tuple(
        TaskFacts(one.name, one.role, one.index, str(one.ip), one.gpus, one.cpus, one.memory)
        for one in cluster.tasks
    )
    return RunFacts(cluster.name, run, tasks, cluster.leader.name, since, cluster.image,
                    str(cluster.style), cluster.origin.kit)  # fmt: skip


def facts_of_outcome(outcome: Mapping[str, Any], cluster: str, run: str) -> RunFacts:
    """The same of a run that has left nothing but its outcome."""
    tasks = tuple(
        TaskFacts(str(row["name"]), str(row.get("role", "")), _index(row), str(row.get("ip", "")))
        for row in rows(outcome)
        if row.get("name")
    )
    leads = (one.name for one in tasks if one.role in ROLES and ROLES[one.role].leads)
    leader = next(leads, "")
    return RunFacts(cluster, run, tasks, leader, outcome=outcome)


def rows(outcome: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The tasks of outcome.json, which another version may have written otherwise."""
    told = outcome.get("tasks")
    return [row for row in told if isinstance(row, dict)] if isinstance(told, list) else []


def _index(row: Mapping[str, Any]) -> int:
    tail = str(row["name"]).rpartition("-")[2]
    return int(tail) if tail.isascii() and tail.isdecimal() else 0
