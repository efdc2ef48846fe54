"""The state that all answers share: workspace, engine, channels, and the allowed actions."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from cluster_kit.errors import EngineError, HostError, UsageError
from cluster_kit.host import Host
from cluster_kit.platforms.engine import ContainerSummary, Engine
from cluster_kit.workspace import RunDirectory, Workspace, newest_run_directory

FASTEST_S, SLOWEST_S = 0.25, 2.0
SHARE = 0.03
"""Maximum share of one core for reading; slower readings are repeated less often."""
PULSE_S = 5.0
"""Seconds after which an idle page gets an empty message, which shows whether it is still open."""
MOST_WAITING = 64
"""Maximum number of queued messages of a page; a slower page gets everything again."""


class Source(Protocol):
    """A source of messages for pages."""

    def look(self, *, last: bool = False) -> bytes:
        """Read what is new and return it as messages; b"" if nothing is new. May take seconds.

        Args:
            last: whether this is the last reading, so that nothing may be postponed.
        """
        ...

    def whole(self) -> bytes:
        """The messages for a new page, as of the last call of `look`."""
        ...

    def close(self) -> None:
        """Release the source; it is not read any more."""
        ...


class Channel:
    """Passes a source's messages on to all listening pages."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._pages: list[queue.Queue[bytes]] = []
        self._lock = threading.Lock()
        self._reads = False
        self._closed = threading.Event()

    def listen(self) -> Iterator[bytes]:
        """Yields the messages for one page until the page or the channel is closed."""
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
        """The number of listening pages."""
        return len(self._pages)

    def close(self, last: bytes) -> None:
        """Send all pages the newest state and then `last`; the pages end after that."""
        with self._lock:
            try:
                if self._pages:
                    self._tell(self._source.look(last=True) + last)
                self._source.close()
            finally:
                self._closed.set()  # not before `last` is told: a page may end from now on

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
        """Read repeatedly while a page is open."""
        pause = FASTEST_S
        while not self._closed.wait(pause):
            with self._lock:
                if self._closed.is_set():
                    break
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
    """Seconds until the next reading: short during changes, longer if a reading needs much CPU
    time."""
    usual = FASTEST_S if new else min(last * 1.5, SLOWEST_S)
    return max(usual, took / SHARE)


GLANCE_S = 1.0
END_S = 2.0
LONGEST_NAME = 255
"""Maximum bytes of a file's name on all usual file systems."""


@dataclass
class Site:
    """`host` connects to the engine; `control` is whether pages may stop tasks."""

    workspace: Workspace
    host: Host
    control: bool = False
    _engine: Engine | None = None
    _seen: list[ContainerSummary] = field(default_factory=list)
    _seen_at: float = -GLANCE_S
    _trouble: str = ""
    _channels: dict[str, Channel] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def engine(self) -> Engine:
        """The engine; raises HostError or EngineError while none answers."""
        with self._lock:
            if self._engine is None:
                self._engine = self.host.connect()
            return self._engine

    def glance(self) -> list[ContainerSummary]:
        """The containers of all clusters, at most a second old; [] while no engine answers."""
        if time.monotonic() < self._seen_at + GLANCE_S:
            return self._seen
        try:
            self._seen, self._trouble = self.engine().glance(), ""
        except (EngineError, HostError) as error:
            self._seen, self._trouble = [], error.message
        self._seen_at = time.monotonic()
        return self._seen

    @property
    def trouble(self) -> str:
        """The reason why running clusters cannot be shown; "" if they can."""
        return self._trouble

    def of(self, cluster: str) -> list[ContainerSummary]:
        """The containers of one cluster, sidecars included; [] if it is not up."""
        return [one for one in self.glance() if one.cluster == cluster]

    def newest(self, cluster: str) -> RunDirectory | None:
        """The run of a running cluster, else its last run in this workspace; None if there is none.

        A running cluster may have been started in another directory. If it was started without the
        kit, its run has no record.
        """
        outputs = [one.output for one in self.of(cluster) if one.output]
        if outputs:
            return RunDirectory(Path(outputs[0]).parent)
        return newest_run_directory(self.workspace.runs(cluster)) if _is_name(cluster) else None

    def run(self, cluster: str, run: str) -> RunDirectory:
        """The run with these names; raises UsageError if this workspace does not have it."""
        newest = self.newest(cluster)
        if newest is not None and newest.path.name == run:
            return newest
        directory = RunDirectory(self.workspace.runs(cluster) / run)
        if not (_is_name(cluster) and _is_name(run) and directory.output.is_dir()):
            raise UsageError(f"no run {run} of {cluster} here", "the page of all runs is /")
        return directory

    def channel(self, name: str, source: Callable[[], Source]) -> Channel:
        """The channel of this name, created at the first call."""
        with self._lock:
            if name not in self._channels:
                self._channels[name] = Channel(source())
            return self._channels[name]

    def close(self, last: bytes) -> None:
        """Notify all pages that the server ends; returns within END_S even if reading is stuck."""
        until = time.monotonic() + END_S
        channels = list(self._channels.values())
        closing = [
            threading.Thread(target=one.close, args=(last,), daemon=True) for one in channels
        ]
        for thread in closing:
            thread.start()
        for thread in closing:
            thread.join(max(0.0, until - time.monotonic()))
        while any(one.pages for one in channels) and time.monotonic() < until:
            time.sleep(0.02)


def _is_name(part: str) -> bool:
    """Whether a part of a URL can be a directory's name here, and does not lead elsewhere."""
    fits = len(os.fsencode(part)) <= LONGEST_NAME
    return fits and part not in ("", ".", "..") and "/" not in part and "\0" not in part
