"""Reads the engine's events of one cluster in a thread, with times that never decrease."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from dataclasses import replace

from cluster_kit.errors import EngineError
from cluster_kit.host import Clock
from cluster_kit.observe.progress import Entry
from cluster_kit.observe.reconcile import is_told
from cluster_kit.platforms.docker.docker_connection import START_IT
from cluster_kit.platforms.engine import Action, Container, Engine, Event, Subscription

SET_S = 1.0
"""Seconds: a clock that is off by more was set, or the machine slept; less is usual correction."""
AHEAD_S = 0.5
"""Maximum seconds by which a new event's time can be later than now."""


class Timeline:
    """Converts times of day of containers and the engine to times that never decrease.

    All are in Unix seconds; they are equal unless the clock is changed.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = self._clock.time() - self._clock.monotonic()
        self._ahead = [0.0]

    def now(self) -> float:
        """The time by the clock as it was when this timeline was created."""
        ahead = self._clock.time() - self._clock.monotonic() - self._began
        if abs(ahead - self._ahead[-1]) > SET_S:
            self._ahead.append(ahead)
        return self._clock.time() - self._ahead[-1]

    def of(self, moment: float) -> float:
        """Converts a recent time of day, which may be from before the clock was set.

        If it can mean several times, the last one that is not in the future is returned.
        """
        latest = self.now() + AHEAD_S
        meanings = [moment - ahead for ahead in self._ahead]
        return max((m for m in meanings if m <= latest), default=meanings[-1])

    def event(self, event: Event) -> Event:
        """The event with its time on the timeline."""
        return replace(event, time=self.of(event.time))

    def entry(self, entry: Entry) -> Entry:
        """The entry with its time on the timeline."""
        return replace(entry, time=self.of(entry.time))

    def container(self, container: Container) -> Container:
        """The container with its times on the timeline."""
        return replace(
            container,
            created=self.of(container.created),
            started=self.of(container.started),
            finished=self.of(container.finished),
        )


_LOST = EngineError("the Docker engine closed the stream of its events", START_IT)
_HANGS = EngineError("the Docker engine does not answer any more", "restart it")


class Listener:
    """Returns each event of a cluster's containers since Unix time `since` exactly once.

    Args:
        run: only events of this run, if it is given.
        known: events that are not to be returned again.
        joins: whether the cluster was already up, so that the engine first repeats events.
    """

    def __init__(
        self,
        clock: Clock,
        engine: Engine,
        cluster: str,
        since: float,
        *,
        run: str = "",
        known: Sequence[Event] = (),
        joins: bool = False,
    ) -> None:
        self._clock = clock
        self._engine = engine
        self._cluster = cluster
        self._run = run
        self._arrived: queue.Queue[Event | EngineError] = queue.Queue()
        self._handed_out = list(known)
        self._lost: EngineError | None = None
        self._since = since
        self._known_until = 0.0
        self._repeats_until: float | None = None
        self._connected = 0.0
        self._all_told = threading.Event()
        self._subscription = Subscription()
        self._ask_at = self._clock.monotonic() + _ASK_EVERY_S
        self._listen(since)
        if joins:
            self._expect_repeats()

    def close(self) -> None:
        """End the stream of events, and the thread that reads it."""
        self._subscription.end()

    @property
    def is_behind(self) -> bool:
        """Whether events may be missing, as after a lost connection, until `complete` is called."""
        return self._repeats_until is not None

    @property
    def has_repeated(self) -> bool:
        """Whether the engine has repeated its past events, or has had enough time to."""
        if self._repeats_until is None:
            return False
        return self._all_told.is_set() or self._clock.monotonic() > self._repeats_until

    def complete(self, known_until: float = 0.0) -> None:
        """Note that no event is missing any more; starts and ends before `known_until` are
        known."""
        self._repeats_until = None
        self._known_until = max(self._known_until, known_until)

    def drain(self) -> list[Event]:
        """The events since the last call, in the engine's order.

        If the connection was lost, it is opened again; the engine then repeats some events.

        Raises:
            EngineError: the engine does not answer.
        """
        if self._lost is not None:
            self._listen_again(self._lost)
        self._ask()
        events: list[Event] = []
        while not self._arrived.empty():
            arrived = self._arrived.get_nowait()
            if isinstance(arrived, EngineError):
                self._lost = arrived
            elif self._is_new(arrived):
                self._handed_out.append(arrived)
                events.append(arrived)
        return events

    def _ask(self) -> None:
        """Check every few seconds whether the engine answers: the stream of a hanging engine does
        not end.

        Raises:
            EngineError: it does not answer.
        """
        if self._clock.monotonic() >= self._ask_at:
            self.ask()

    def ask(self) -> None:
        """Check now whether the engine answers; raises EngineError if it does not."""
        self._ask_at = self._clock.monotonic() + _ASK_EVERY_S
        if not self._engine.answers():
            self._lost = _HANGS
            raise _HANGS

    def _is_new(self, event: Event) -> bool:
        if event.action in (Action.START, Action.DIE) and event.time < self._known_until:
            return False
        if event.time < self._connected:
            return not is_told(event, self._handed_out)
        return event not in self._handed_out[-_REPEATED:]

    def _listen(self, since: float) -> None:
        self.close()  # if the engine hangs, the old thread continues
        self._subscription = Subscription()
        threading.Thread(target=self._hear, args=(since, self._subscription), daemon=True).start()

    def _hear(self, since: float, until: Subscription) -> None:
        """Queue every event, and then the error that ended the stream."""
        try:
            for event in self._engine.events(self._cluster, since, self._run, until):
                if event.action == Action.ALL_TOLD:
                    self._all_told.set()
                else:
                    self._arrived.put(event)
            self._arrived.put(_LOST)
        except EngineError as error:
            self._arrived.put(error)

    def _listen_again(self, lost: EngineError) -> None:
        """Listen again if the engine answers; raises `lost` if it does not."""
        if not self._engine.answers():
            raise lost
        self._lost = None
        self._all_told.clear()
        self._listen(self._handed_out[-1].time if self._handed_out else self._since)
        self._expect_repeats()

    def _expect_repeats(self) -> None:
        self._repeats_until = self._clock.monotonic() + _REPEATS_WITHIN_S
        self._connected = self._clock.time()


_REPEATS_WITHIN_S = 3.0
_ASK_EVERY_S = 2.0
_REPEATED = 300
"""An engine remembers its last 256 events."""
