"""The events of a run's containers: saved by whoever watches it, and as the engine tells them."""

from __future__ import annotations

import math
import queue
import threading
import time

from cluster_kit.engine.containers import Event
from cluster_kit.engine.subscription import Subscription
from cluster_kit.errors import EngineError, HostError
from cluster_kit.observe.missed import is_told
from cluster_kit.run.keeping.evidence import read_events
from cluster_kit.run.keeping.record import Record
from cluster_kit.serve.site import Site
from cluster_kit.workspace import RunDirectory

AGAIN_S = 2.0
"""After a stream has ended: the engine was lost, or is about to be."""


class Happened:
    """Returns each event once. A run that nobody watches has only those of the engine."""

    def __init__(self, site: Site, run: RunDirectory, record: Record) -> None:
        self._site, self._run, self._record = site, run, record
        self._arrived: queue.Queue[Event] = queue.Queue()
        self._told: list[Event] = []
        self._size = -1
        self._hears = False
        self._again_at = 0.0
        self._subscription = Subscription()

    def listen(self) -> None:
        """Hear of what happens from now on, and of what the engine remembers; once is enough."""
        if not self._hears and time.monotonic() >= self._again_at:
            self._hears = True
            threading.Thread(target=self._hear, daemon=True).start()

    def close(self) -> None:
        """Hear no more: the thread that listens ends."""
        self._again_at = math.inf
        self._subscription.end()

    def poll(self) -> list[Event]:
        """What is new, oldest first."""
        found = []
        while not self._arrived.empty():
            found.append(self._arrived.get_nowait())
        if (size := self._saved()) != self._size:
            self._size = size
            found += read_events(self._run, self._record.since)
        new = []
        for event in sorted(found, key=lambda event: event.time):
            if event.time >= self._record.since and not is_told(event, self._told):
                self._told.append(event)
                new.append(event)
        return new

    def _saved(self) -> int:
        try:
            return (self._run.path / "events.jsonl").stat().st_size
        except OSError:
            return 0

    def _hear(self) -> None:
        try:
            engine, name = self._site.engine(), self._record.cluster.name
            until = self._subscription
            for event in engine.events(name, self._record.since, self._record.id, until):
                self._arrived.put(event)
        except (EngineError, HostError):
            pass  # the page says so: see `Site.trouble`
        finally:
            self._again_at = max(self._again_at, time.monotonic() + AGAIN_S)
            self._hears = False
