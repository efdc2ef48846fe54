"""Watches a running cluster until its leader and then its other tasks have ended."""

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
"""Servers end within a second of the leader; on a very busy host this is the limit."""
OVERDUE_SLACK_S = 60.0

Ending = Literal["ended", "overdue", "interrupted"]
"""The leader ended for good; the kit's own limit on the run passed; Ctrl-C or SIGTERM."""
Show = Callable[[RunState], None]


class Watch:
    """Observes one run. `seen` is the state so far, also after an interruption."""

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
        self._leader_restarts = 0

    def until_ended(self, show: Show) -> Ending:
        """Wait until the run is over and return how it ended; calls `show` with each new state.

        Raises:
            EngineError: the engine was lost.
        """
        deadlines = self._cluster.deadlines
        overdue = time.monotonic() + deadlines.start + deadlines.job + OVERDUE_SLACK_S
        while not self._leader_ended():
            if time.monotonic() > overdue:
                return "overdue"
            self._poll(show)
        grace = deadlines.evaluator_grace if self.seen.sidecars else 0.0
        deadline = time.monotonic() + grace + FOLLOW_S
        while not all(map(self.seen.is_done, self.seen.tasks)) and time.monotonic() < deadline:
            self._poll(show)
        self._poll(show)
        return "ended"

    def _poll(self, show: Show) -> None:
        time.sleep(POLL_S)
        self.catch_up()
        show(self.seen)

    def catch_up(self) -> None:
        """Add all new events and progress entries to `seen`.

        Raises:
            EngineError: the engine was lost; progress entries have been added all the same.
        """
        try:
            for event in self._listener.drain():
                self.seen = self.seen.with_event(event)
        finally:
            for entry in self._progress.poll():
                self.seen = self.seen.with_entry(entry)

    def _leader_ended(self) -> bool:
        """Whether the leader ended for good.

        One that crashed without an `end` entry is started again, up to the manifest's `retries`.
        """
        leader = self.seen.tasks[self.seen.leader]
        if leader.state is not State.ENDED:
            return False
        if leader.exit_code == 0 or self.seen.end_entry(leader.name) is not None:
            return True
        if self._leader_restarts > leader.restarts:
            return False  # started again; the event has not arrived yet
        if self._leader_restarts >= self._cluster.retries:
            return True
        containers = self._engine.containers(self._cluster.name)
        container = next((c for c in containers if c.leader), None)
        if container is None:
            return True  # it was removed by hand
        self._leader_restarts += 1
        self._engine.start_again(container.id)
        return False
