"""Which tasks of the kit have never run on a swarm, and why not. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from cluster_kit.engine.swarm.tasks import (
    ENDED,
    ORPHANED,
    Task,
    by_service,
    name_of,
    never_ran,
    state_of,
)


def has_run(group: Sequence[Task]) -> bool:
    """Whether any of a service's tasks has ever run: one that its node could not start has not."""
    return any(
        state_of(task) == "running" or (state_of(task) in ENDED and not never_ran(task))
        for task in group
    )


def refusals(tasks: Iterable[Task], nodes: Mapping[str, str]) -> dict[str, str]:
    """Why tasks of the kit have never run, by name: what their newest task says.

    Args:
        nodes: host names of nodes by id.
    """
    found = {}
    for group in by_service(tasks).values():
        newest = group[-1]
        said, node = newest["Status"].get("Err"), nodes.get(newest.get("NodeID") or "", "")
        if not said or has_run(group) or not (never_ran(newest) or state_of(newest) == "pending"):
            continue
        if state_of(newest) == ORPHANED:
            said = "the node went down before it had started it"
        found[name_of(newest)] = f"{said} (node {node})" if node else str(said)
    return found
