"""Watches a running cluster until its leader has ended for good and the others have followed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

from cluster_kit.cluster import Cluster
from cluster_kit.engine.interface import Engine
from cluster_kit.observe.listener import Listener
from cluster_kit.observe.progress import ProgressReader
from cluster_kit.observe.state import RunState
from cluster_kit.observe.task_view import State
from cluster_kit.workspace import RunDirectory

POLL_S = 0.2
FOLLOW_S = 15.0
"""Servers end within a second of the leader; this bounds a host that is very busy."""
OVERDUE_SLACK_S = 60.0

How = Literal["ended", "overdue", "interrupted"]
"""The leader ended for good; the kit's own bound on the whole run passed; Ctrl-C or SIGTERM."""
Show = Callable[[RunState], None]


class Watch:
    """Follows one run. `seen` is what it has observed so far, also after an interruption."""

    def __init__(
        self,
        engine: Engine,
        cluster: Cluster,
        directory: RunDirectory,
        listener: Listener,
        since: float,
    ) -> None:
        self.seen = RunState.of(cluster)
        self._engine = engine
        self._cluster = cluster
        self._progress = ProgressReader(directory.progress, since)
        self._listener = listener
        self._revived = 0

    def until_ended(self, show: Show) -> How:
        """Block until the run is over; `show` is called with each new observation.

        Raises:
            EngineError: the engine was lost.
        """
        limits = self._cluster.deadlines
        overdue = time.monotonic() + limits.start + limits.job + OVERDUE_SLACK_S
        while not self._leader_ended():
            if time.monotonic() > overdue:
                return "overdue"
            self._poll(show)
        grace = limits.evaluator_grace if self.seen.sidecars else 0.0
        follow = time.monotonic() + grace + FOLLOW_S
        while not all(map(self.seen.over, self.seen.tasks)) and time.monotonic() < follow:
            self._poll(show)
        self._poll(show)
        return "ended"

    def _poll(self, show: Show) -> None:
        time.sleep(POLL_S)
        self.catch_up()
        show(self.seen)

    def catch_up(self) -> None:
        """Take in what has happened since the last look.

        Raises:
            EngineError: the engine was lost; what the tasks wrote has been taken in all the same.
        """
        try:
            for event in self._listener.drain():
                self.seen = self.seen.with_event(event)
        finally:
            for entry in self._progress.poll():
                self.seen = self.seen.with_entry(entry)

    def _leader_ended(self) -> bool:
        """Whether the leader ended for good; one that crashed without a last word is revived."""
        leader = self.seen.tasks[self.seen.leader]
        if leader.state is not State.ENDED:
            return False
        if leader.exit_code == 0 or self.seen.ended_for_good(leader.name) is not None:
            return True
        if self._revived > leader.restarts:
            return False  # started again, and the engine has yet to tell of it
        if self._revived >= self._cluster.retries:
            return True
        containers = self._engine.containers(self._cluster.name)
        container = next((c for c in containers if c.leader), None)
        if container is None:
            return True  # somebody has removed it
        self._revived += 1
        self._engine.start_again(container.id)
        return False
