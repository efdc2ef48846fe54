"""Ends a stream of the engine's events from another thread than the one that reads it."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Subscription:
    """Lasts until `end`; whoever streams says by `ends_by` what closes the stream."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._close: Callable[[], None] | None = None

    def ends_by(self, close: Callable[[], None]) -> None:
        """Call `close` at the end, at once if it has ended already; any thread may call it."""
        with self._lock:
            self._close = close
            over = self._over.is_set()
        if over:
            close()

    def end(self) -> None:
        """End the stream: its iterator stops. A second call does nothing."""
        with self._lock:
            close, self._close = self._close, None
            self._over.set()
        if close is not None:
            close()

    def wait(self, seconds: float) -> bool:
        """Wait so long, or until the end; whether it has ended."""
        return self._over.wait(seconds)
