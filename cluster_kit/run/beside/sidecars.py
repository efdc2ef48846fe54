"""Sidecars of a run that goes on: noticed if one crashes, and told."""

from __future__ import annotations

from cluster_kit.observe import asked
from cluster_kit.observe.state import RunState
from cluster_kit.resolved import Cluster
from cluster_kit.run.context import Launch
from cluster_kit.run.judging.sidecars import crashed, words

LOOK_S = 1.0
"""One that a person restarts is down for less, so a crash is one that is seen at two looks."""


class Sidecars:
    """Looks at the sidecars of one run from time to time, and tells of each crash once.

    `has_failed`: one that the job needs has crashed.
    """

    def __init__(self, run: Launch, cluster: Cluster) -> None:
        self.has_failed = False
        self._run = run
        self._clock = run.host.clock
        self._required = {one.name for one in cluster.sidecars if one.required}
        self._next = self._clock.monotonic() + LOOK_S if cluster.sidecars else float("inf")
        self._down: set[tuple[str, float]] = set()
        self._told: set[tuple[str, float]] = set()

    def look(self, seen: RunState) -> None:
        """See which are down, if the last look is long enough ago; raises EngineError."""
        if self._clock.monotonic() < self._next:
            return
        self._next = self._clock.monotonic() + LOOK_S
        if _is_to_end(seen):
            self._down = set()
            return
        down = {(one.name, one.finished): one for one in crashed(self._run.sidecars())}
        for key, one in down.items():
            if key in self._down and key not in self._told:
                self._told.add(key)
                self._run.view.phase(words(one))
                self.has_failed |= one.name in self._required
        self._down = set(down)


def _is_to_end(seen: RunState) -> bool:
    """Whether a person has asked for an end of the cluster, for a while or for good."""
    one = asked.last(seen.requests, seen.leader)
    return one is not None and one.time > seen.started.get(seen.leader, 0.0)
