"""What is told of a run whose program waits for a debugger. Pure."""

from __future__ import annotations

from cluster_kit.resolved import LOOPBACK, Cluster, Task


def task_of(cluster: Cluster) -> Task | None:
    """The task whose program waits for a debugger, None if none does."""
    return next((task for task in cluster.tasks if task.debug), None)


def words(task: Task) -> str:
    """A sentence for a person, once the containers have started."""
    return (
        f"{task.name} waits for a debugger on {LOOPBACK}:{task.debug}; no deadline counts, and "
        "Ctrl-C ends it"
    )
