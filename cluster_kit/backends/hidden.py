"""Values of variables that look like secrets: kept out of what others may read. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from cluster_kit.cluster import Cluster, Task
from cluster_kit.util.masking import MASK, looks_secret, option_values, without_option_values


def hides(name: str, value: str) -> bool:
    """Whether a variable's value is one to hide; a masked one is not."""
    return looks_secret(name) and value not in ("", MASK)


def mode_of(cluster: Cluster) -> int | None:
    """The permissions of a file that has all that a cluster's tasks have, None for the usual."""
    return 0o600 if any(option_values(task.arguments) for task in cluster.tasks) else None


def without_secrets(cluster: Cluster) -> Cluster:
    """The cluster with MASK for every value of a variable or an option that looks like a secret."""
    beside = (replace(one, environment=shown(one.environment)) for one in cluster.sidecars)
    return replace(cluster, tasks=tuple(map(_task_without, cluster.tasks)), sidecars=tuple(beside))


def _task_without(task: Task) -> Task:
    return replace(
        task,
        environment=shown(task.environment),
        command=(*task.command[:2], *without_option_values(task.arguments)),
    )


def shown(environment: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The variables, with MASK for every value of one that looks like a secret."""
    return tuple((name, MASK if looks_secret(name) else value) for name, value in environment)
