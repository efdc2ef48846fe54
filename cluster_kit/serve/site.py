"""What all answers share: the workspace, the engine, the channels, and what may be done."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from cluster_kit.engine.containers import Glance
from cluster_kit.engine.interface import Engine
from cluster_kit.errors import EngineError, HostError
from cluster_kit.serve.channel import Channel, Source
from cluster_kit.workspace import Workspace

GLANCE_S = 1.0
END_S = 2.0
Connect = Callable[[], Engine]


@dataclass
class Site:
    """`connect` makes a connection to the engine; `control`: tasks may be stopped from a page."""

    workspace: Workspace
    connect: Connect
    control: bool = False
    _engine: Engine | None = None
    _seen: list[Glance] = field(default_factory=list)
    _seen_at: float = -GLANCE_S
    _trouble: str = ""
    _channels: dict[str, Channel] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def engine(self) -> Engine:
        """The engine; raises HostError or EngineError while none answers."""
        with self._lock:
            if self._engine is None:
                self._engine = self.connect()
            return self._engine

    def glance(self) -> list[Glance]:
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
        """Why nothing is known of clusters that are up; "" if all is well."""
        return self._trouble

    def channel(self, name: str, source: Callable[[], Source]) -> Channel:
        """The channel of this name, made at the first call."""
        with self._lock:
            if name not in self._channels:
                self._channels[name] = Channel(source())
            return self._channels[name]

    def close(self, last: bytes) -> None:
        """Tell all pages that the server ends, and wait for a moment until they have heard it."""
        for channel in list(self._channels.values()):
            channel.close(last)
        until = time.monotonic() + END_S
        while any(one.pages for one in self._channels.values()) and time.monotonic() < until:
            time.sleep(0.02)
