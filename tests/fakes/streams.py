"""Sends events of containers to listeners, like an engine's event streams."""

from __future__ import annotations

import queue
import threading
import time as real_time
from collections.abc import Iterator

from cluster_kit.platforms.engine import Event, Subscription
from tests.fakes.box import Box
from tests.fakes.clock import Clock

_PATIENCE_S = 10.0


class Streams:
    """The containers, and the events about them. An engine that is `lost` reports nothing that
    happens meanwhile, not even later."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.boxes: dict[str, Box] = {}
        self.lost = False
        self._history: list[Event] = []
        self._forgotten = 0
        self._listeners: list[queue.Queue[Event | None]] = []
        self._closing: list[queue.Queue[Event | None]] = []
        self._changed = threading.Condition()
        self._over = False
        self._hung_up = False
        clock.settle = self.settle

    def heard(self, since: float, until: Subscription) -> Iterator[Event]:
        """Yield events since then, and new ones, until the listener closes the stream."""
        with self._changed:
            self._hung_up = False
            heard: queue.Queue[Event | None] = queue.Queue()
            for event in self._history[self._forgotten :]:
                if event.time >= since:
                    heard.put(event)
            self._listeners.append(heard)
        until.ends_by(lambda: self._leave(heard))
        while (told := heard.get()) is not None:
            yield told
            heard.task_done()
        heard.task_done()

    def _leave(self, heard: queue.Queue[Event | None]) -> None:
        """End a listener's stream."""
        with self._changed:
            if heard in self._listeners:
                self._listeners.remove(heard)
                self._closing.append(heard)
                self._hung_up = self._hung_up or not self._listeners
                heard.put(None)

    def forget(self) -> None:
        """Forget all events: a real engine stores only the last ones."""
        self._forgotten = len(self._history)

    def remember(self) -> None:
        """Report all events to listeners from now on."""
        self._forgotten = 0

    def hang_up(self) -> None:
        """Close the streams of events; a process that asks whether the engine answers may listen
        again."""
        self._hung_up = True
        with self._changed:
            for heard in self._listeners:
                heard.put(None)
            self._closing += self._listeners
            self._listeners.clear()

    def finish(self) -> None:
        """End the test: release all threads."""
        self._over = True
        self.hang_up()
        with self._changed:
            self._changed.notify_all()

    def settle(self) -> None:
        """Wait until all events have been processed."""
        until = real_time.monotonic() + _PATIENCE_S
        while real_time.monotonic() < until:
            listening = self._hung_up or self._listeners or not self.boxes
            streams = (*self._listeners, *self._closing)
            if listening and not any(heard.unfinished_tasks for heard in streams):
                return
            real_time.sleep(0.0005)
        raise AssertionError("nobody listens to the engine's events")

    def _tell(self, box: Box, action: str, code: int | None = None) -> None:
        event = Event(self.clock.time() + 1e-6 * len(self._history), action, box.task, code)
        if box.sidecar:  # as the kit receives them: not at all
            return
        with self._changed:
            self._history.append(event)
            if self.lost:
                self._forgotten = len(self._history)
            for heard in self._listeners:
                heard.put(event)
        self._notify()

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _wait(self) -> None:
        with self._changed:
            self._changed.wait(0.01)
