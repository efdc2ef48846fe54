"""Waits until every task of a stack runs somewhere: a deployment alone promises nothing."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Protocol

from cluster_kit.backends.interface import SubnetTaken
from cluster_kit.errors import EngineError

POLL_S = 0.3
PATIENCE_S = 10.0
"""A swarm tries again by itself: what it says has to last so long."""
WITHOUT_SUBNET_S = 2.0
"""A network has its subnet in a moment, or when another network is gone that overlaps with it."""
LONGEST_S = 180.0


class Starting(Protocol):
    """What is asked of a swarm here."""

    def not_started(self, cluster: str, run: str) -> tuple[list[str], dict[str, str]]:
        """Names of the tasks that have not started yet, and why, as far as the swarm says so."""

    def lacks_subnet(self, cluster: str, run: str) -> bool:
        """Whether the swarm has not given a run's network its subnet."""


def wait_for_start(swarm: Starting, name: str, run: str) -> None:
    """Return when all tasks of a run have started.

    Raises:
        SubnetTaken: another network of the swarm has the subnet; no task ever says so.
        EngineError: some have not: a node has rejected them, or there is none for them.
    """
    began, said_since, lacks_since = time.monotonic(), 0.0, 0.0
    while True:
        waiting, why = swarm.not_started(name, run)
        now = time.monotonic()
        said_since = (said_since or now) if why else 0.0
        if not waiting and not why:
            return
        lacks_since = (lacks_since or now) if swarm.lacks_subnet(name, run) else 0.0
        if lacks_since and now - lacks_since > WITHOUT_SUBNET_S:
            raise SubnetTaken(
                f"the subnet of {name} is taken: another network of the swarm overlaps with it",
                "choose another `subnet`, or `docker network rm` the one that has it",
            )
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
