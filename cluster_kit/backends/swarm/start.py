"""Waits until every task of a stack runs somewhere: a deployment alone promises nothing."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Protocol

from cluster_kit.errors import EngineError

POLL_S = 0.3
PATIENCE_S = 10.0
"""A swarm tries again by itself: what it says has to last so long."""
LONGEST_S = 180.0


class Starting(Protocol):
    """What is asked of a swarm here."""

    def not_started(self, cluster: str, run: str) -> tuple[list[str], dict[str, str]]:
        """Names of the tasks that have not started yet, and why, as far as the swarm says so."""


def wait_for_start(swarm: Starting, name: str, run: str) -> None:
    """Return when all tasks of a run have started.

    Raises:
        EngineError: some have not: a node has rejected them, or there is none for them.
    """
    began, said_since = time.monotonic(), 0.0
    while True:
        waiting, why = swarm.not_started(name, run)
        now = time.monotonic()
        said_since = (said_since or now) if why else 0.0
        if not waiting and not why:
            return
        if (why and now - said_since > PATIENCE_S) or now - began > LONGEST_S:
            raise not_started(waiting, why)
        time.sleep(POLL_S)


def not_started(waiting: Sequence[str], why: Mapping[str, str]) -> EngineError:
    """The error for tasks that no node has started; each reason is told once."""
    reasons: dict[str, list[str]] = {}
    for task, reason in why.items():
        reasons.setdefault(reason, []).append(task)
    lines = [f"{', '.join(tasks)}: {reason}" for reason, tasks in reasons.items()]
    if not lines:
        lines = [f"{', '.join(waiting)}: no node has said why"]
    return EngineError(
        f"a swarm's nodes have not started every task after {PATIENCE_S:.0f} s and more:\n"
        + "\n".join(f"  {line}" for line in lines),
        _cure(" ".join(lines)),
    )


def _cure(said: str) -> str:
    if "No such image" in said:
        return "bring the image to that node: `cluster-kit image push NAME --to ssh://USER@NODE`"
    if "bind source path does not exist" in said:
        return "every node needs that folder at the same path: mount it there (NFS)"
    if "scheduling constraints" in said:
        return (
            "`docker node ls` and `docker node inspect NODE` show the nodes' labels; mend `nodes`"
        )
    if "insufficient resources" in said:
        return (
            "lower `cpus`, `memory` or the number of GPUs, or add a node; "
            "`cluster-kit doctor NAME` says which GPUs the nodes announce"
        )
    return "mend what the swarm says and run it again: `docker node ls` shows its nodes"
