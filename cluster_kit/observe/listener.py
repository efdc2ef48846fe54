"""Reads the engine's events of one cluster in a thread, and detects a lost engine."""

from __future__ import annotations

import queue
import threading
import time

from cluster_kit.engine.containers import Container, Event
from cluster_kit.engine.interface import Engine
from cluster_kit.errors import EngineError

_LOST = EngineError(
    "the Docker engine stopped in the middle of the run",
    "start it (`make engine`); `cluster-kit status` then shows what is still up, and "
    "`cluster-kit down NAME` removes it",
)


class Listener:
    """Returns each event of a cluster's containers since Unix time `since` exactly once."""

    def __init__(self, engine: Engine, cluster: str, since: float) -> None:
        self._engine = engine
        self._cluster = cluster
        self._arrived: queue.Queue[Event | EngineError] = queue.Queue()
        self._handed_out: list[Event] = []
        self._lost: EngineError | None = None
        self._listens = True
        self._agrees_by = 0.0
        self._since = since
        self._listen(since)

    def drain(self) -> list[Event]:
        """The events since the last call, in the engine's order.

        Raises:
            EngineError: the engine does not answer, or was restarted, which ends containers.
        """
        if self._lost is not None:
            self._reconnect(self._lost)
        events: list[Event] = []
        while not self._arrived.empty():
            arrived = self._arrived.get_nowait()
            if isinstance(arrived, EngineError):
                self._lost, self._listens = arrived, False
            elif arrived not in self._handed_out[-_REPEATED:]:
                self._handed_out.append(arrived)
                events.append(arrived)
        return events

    def _listen(self, since: float) -> None:
        threading.Thread(target=self._hear, args=(since,), daemon=True).start()

    def _hear(self, since: float) -> None:
        """Queue every event, and then the error because of which there are no more."""
        try:
            for event in self._engine.events(self._cluster, since):
                self._arrived.put(event)
            self._arrived.put(_LOST)
        except EngineError as error:
            self._arrived.put(error)

    def _reconnect(self, lost: EngineError) -> None:
        """Listen again if the engine still answers; raises `lost` if it does not.

        A connection may break while engine and containers live on. The engine then repeats its
        events from a given time on, and soon the containers must be as the events say.
        """
        if not self._listens:
            if not self._engine.answers():
                raise lost
            self._listens, self._agrees_by = True, time.monotonic() + _REPEATS_WITHIN_S
            self._listen(self._handed_out[-1].time if self._handed_out else self._since)
        elif self._agrees_with(self._engine.containers(self._cluster)):
            self._lost = None
        elif time.monotonic() > self._agrees_by:
            raise lost

    def _agrees_with(self, containers: list[Container]) -> bool:
        """Whether the containers that run are those that run by the events so far.

        An engine that was restarted has ended containers without an event.
        """
        changes = [event for event in self._handed_out if event.action in ("start", "die")]
        running = {event.task: event.action == "start" for event in changes}
        alive = {c.name for c in containers if c.exit_code is None and c.name in running}
        return alive == {task for task, runs in running.items() if runs}


_REPEATS_WITHIN_S = 3.0
_REPEATED = 300
"""An engine remembers its last 256 events."""
