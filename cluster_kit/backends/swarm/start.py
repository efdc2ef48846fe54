"""Waits until every task of a stack runs somewhere: a deployment alone promises nothing."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from cluster_kit.backends.interface import SubnetTaken
from cluster_kit.errors import EngineError

POLL_S = 0.3
PATIENCE_S = 10.0
"""A swarm tries again by itself: what it says has to last so long."""
BETWEEN_S = 4.0
"""While it tries again, on this node or another, it says nothing; longer is a node that works."""
WITHOUT_SUBNET_S = 2.0
"""A network has its subnet in a moment, or when another network is gone that overlaps with it."""
LONGEST_S = 180.0


class Starting(Protocol):
    """What is asked of a swarm here."""

    def not_started(self, cluster: str, run: str) -> tuple[list[str], dict[str, str]]:
        """Names of the tasks that have never run, and why, as far as the swarm says so now."""

    def lacks_subnet(self, cluster: str, run: str) -> bool:
        """Whether the swarm has not given a run's network its subnet."""


@dataclass
class Said:
    """What a swarm says of tasks that do not run, and since when."""

    why: dict[str, str] = field(default_factory=dict)
    since: float = 0.0
    last: float = 0.0

    def now(self, why: Mapping[str, str], now: float) -> None:
        """Take what is said at `now`, in seconds; it is forgotten when nothing is for a while."""
        if why:
            self.why |= why
            self.since, self.last = self.since or now, now
        elif now - self.last > BETWEEN_S:
            self.why, self.since = {}, 0.0

    def lasts(self, now: float) -> bool:
        """Whether it has been said for so long that a further attempt changes nothing."""
        return bool(self.since) and now - self.since > PATIENCE_S


def wait_for_start(swarm: Starting, name: str, run: str) -> None:
    """Return when all tasks of a run have started.

    Raises:
        SubnetTaken: another network of the swarm has the subnet; no task ever says so.
        EngineError: some have not: a node has rejected them, or there is none for them.
    """
    began, lacks_since, said = time.monotonic(), 0.0, Said()
    while True:
        waiting, why = swarm.not_started(name, run)
        if not waiting:
            return
        now = time.monotonic()
        said.now(why, now)
        lacks_since = (lacks_since or now) if swarm.lacks_subnet(name, run) else 0.0
        if lacks_since and now - lacks_since > WITHOUT_SUBNET_S:
            raise SubnetTaken(
                f"the subnet of {name} is taken: another network of the swarm overlaps with it",
                "choose another `subnet`, or `docker network rm` the one that has it",
            )
        if said.lasts(now) or now - began > LONGEST_S:
            raise not_started(
                waiting, {task: said.why[task] for task in waiting if task in said.why}
            )
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
    if "error mounting" in said:
        return "every node needs the same file or folder at that path: mount it there (NFS)"
    if "Range of CPUs" in said:
        return "that node has fewer: lower `cpus`, or choose larger nodes with `nodes`"
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
