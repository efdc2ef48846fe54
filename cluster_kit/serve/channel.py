"""One reading for all pages that show the same, and none while nobody looks."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from typing import Protocol

FASTEST_S, SLOWEST_S = 0.25, 2.0
SHARE = 0.03
"""Of one core: a reading that takes more of it comes less often."""
PULSE_S = 5.0
"""How often a page that is told nothing is written to, which shows that it is still there."""
MOST_WAITING = 64
"""Messages that a page has not taken; one that is further behind is told the whole again."""


class Source(Protocol):
    """What pages are told of."""

    def look(self, *, last: bool = False) -> bytes:
        """Read what is new; the messages that tell it, b"" if nothing is. May take a while.

        Args:
            last: nothing is read after this, so that nothing may be left for later.
        """
        ...

    def whole(self) -> bytes:
        """The messages for a page that knows nothing yet, as of the last look."""
        ...

    def close(self) -> None:
        """Nothing is read any more."""
        ...


class Channel:
    """Passes a source's messages on to everybody who listens."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._pages: list[queue.Queue[bytes]] = []
        self._lock = threading.Lock()
        self._reads = False
        self._closed = threading.Event()

    def listen(self) -> Iterator[bytes]:
        """Yields the messages for one page until it is closed, or the channel is."""
        mine: queue.Queue[bytes] = queue.Queue(MOST_WAITING)
        self._join(mine)
        try:
            while True:
                try:
                    yield mine.get(timeout=PULSE_S)
                except queue.Empty:
                    yield b": nothing new\n\n"
                if self._closed.is_set() and mine.empty():
                    return
        finally:
            with self._lock:
                self._pages.remove(mine)

    @property
    def pages(self) -> int:
        """How many listen."""
        return len(self._pages)

    def close(self, last: bytes) -> None:
        """Tell all pages the newest state and then `last`; they end after that."""
        with self._lock:
            self._closed.set()
            if self._pages:
                self._tell(self._source.look(last=True) + last)
            self._source.close()

    def _join(self, page: queue.Queue[bytes]) -> None:
        with self._lock:
            if not self._reads:
                self._source.look()
            page.put(self._source.whole())
            self._pages.append(page)
            if not self._reads:
                self._reads = True
                threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        """Look as long as somebody listens."""
        pause = FASTEST_S
        while not self._closed.wait(pause):
            with self._lock:
                if not self._pages:
                    self._reads = False
                    return
                began = time.thread_time()
                news = self._source.look()
                took = time.thread_time() - began
                self._tell(news)
            pause = next_pause(pause, took, new=bool(news))
        self._reads = False

    def _tell(self, news: bytes) -> None:
        for page in self._pages if news else ():
            try:
                page.put_nowait(news)
            except queue.Full:
                while not page.empty():
                    page.get_nowait()
                page.put_nowait(self._source.whole())


def next_pause(last: float, took: float, *, new: bool) -> float:
    """Seconds until the next look: short while things happen, longer if one takes much CPU time."""
    usual = FASTEST_S if new else min(last * 1.5, SLOWEST_S)
    return max(usual, took / SHARE)
