"""The times of a run, as if nobody had set the clock meanwhile."""

from __future__ import annotations

from dataclasses import replace

from cluster_kit.observe.progress import Entry
from cluster_kit.platforms.engine import Container, Event
from cluster_kit.util.clock import Clock

SET_S = 1.0
"""A clock that is this much off was set, or the machine was asleep; less is usual correction."""
AHEAD_S = 0.5
"""What is read just now is at most so much later than now."""


class Timeline:
    """Turns times of day, as containers and the engine tell them, into times that only go on.

    All in Unix seconds; they are equal as long as nobody sets the clock.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = self._clock.time() - self._clock.monotonic()
        self._ahead = [0.0]

    def now(self) -> float:
        """The time by the clock as it was when this was made."""
        ahead = self._clock.time() - self._clock.monotonic() - self._began
        if abs(ahead - self._ahead[-1]) > SET_S:
            self._ahead.append(ahead)
        return self._clock.time() - self._ahead[-1]

    def of(self, moment: float) -> float:
        """A time of day that has been read lately: it may be from before the clock was set.

        Of all that it can mean, the last one that is not to come.
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
