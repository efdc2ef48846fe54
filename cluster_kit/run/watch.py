"""Watches a running cluster until its leader has ended for good and the others have followed."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Literal

from cluster_kit.cluster import Cluster
from cluster_kit.engine.containers import Event
from cluster_kit.engine.interface import Engine
from cluster_kit.errors import KitError
from cluster_kit.observe.progress import ProgressReader
from cluster_kit.observe.state import Observed
from cluster_kit.workspace import RunDirectory

POLL_S = 0.2
FOLLOW_S = 15.0
"""Servers end within a second of the leader; this bounds a host that is very busy."""
OVERDUE_SLACK_S = 60.0

How = Literal["ended", "overdue"]
Show = Callable[[Observed], None]


class Watch:
    """Follows one run. `seen` is what it has observed so far, also after an interruption."""

    def __init__(self, engine: Engine, cluster: Cluster, run: RunDirectory, since: float) -> None:
        self.seen = Observed.of(cluster)
        self._engine = engine
        self._cluster = cluster
        self._progress = ProgressReader(run.progress, since)
        self._events: queue.Queue[Event] = queue.Queue()
        self._since = since
        self._revived = 0
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        try:
            for event in self._engine.events(self._cluster.name, self._since):
                self._events.put(event)
        except (OSError, ValueError, KitError):
            # The connection was closed under the stream: the run is over.
            return

    def until_ended(self, show: Show) -> How:
        """Block until the run is over; `show` is called with each new observation."""
        limits = self._cluster.deadlines
        overdue = time.monotonic() + limits.start + limits.job + OVERDUE_SLACK_S
        leader = self._cluster.leader.name
        while not self._leader_ended(leader):
            if time.monotonic() > overdue:
                return "overdue"
            self._poll(show)
        grace = limits.evaluator_grace if self._cluster.sidecars else 0.0
        follow = time.monotonic() + grace + FOLLOW_S
        while not self._all_over(leader) and time.monotonic() < follow:
            self._poll(show)
        self._poll(show)
        return "ended"

    def _poll(self, show: Show) -> None:
        time.sleep(POLL_S)
        self.catch_up()
        show(self.seen)

    def catch_up(self) -> None:
        """Take in what has happened since the last look."""
        while not self._events.empty():
            self.seen = self.seen.with_event(self._events.get_nowait())
        for entry in self._progress.poll():
            self.seen = self.seen.with_entry(entry)

    def _leader_ended(self, leader: str) -> bool:
        """Whether the leader ended for good; one that crashed without a last word is revived."""
        task = self.seen.tasks[leader]
        if task.state != "ended":
            return False
        if task.exit_code == 0 or self.seen.ended_for_good(leader) is not None:
            return True
        if self._revived >= self._cluster.retries:
            return True
        self._revived += 1
        found = next(c for c in self._engine.containers(self._cluster.name) if c.leader)
        self._engine.start_again(found.id)
        return False

    def _all_over(self, leader: str) -> bool:
        return all(self.seen.over(name, leader) for name in self.seen.tasks)
