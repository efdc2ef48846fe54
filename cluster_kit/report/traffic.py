"""Who sent whom how much. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cluster_kit.observe.usage import Sample


@dataclass(frozen=True)
class Edge:
    """Bytes from one task to another, and per second of the time in which there were any."""

    sender: str
    receiver: str
    bytes: int
    bps: float


class Traffic:
    """What was sent so far. A task that was started again counts from zero: what it sent before is
    added."""

    def __init__(self) -> None:
        self._sent: dict[tuple[str, str], float] = {}
        self._timed: dict[tuple[str, str], tuple[float, float]] = {}
        self._last: dict[str, tuple[float, Mapping[str, float]]] = {}

    def add(self, sample: Sample) -> bool:
        """Add a sample; whether it says whom its task has sent anything."""
        if sample.sent_to is None:
            return False
        at, before = self._last.get(sample.task, (sample.time, {}))
        self._last[sample.task] = sample.time, sample.sent_to
        if any(sample.sent_to.get(task, 0.0) < size for task, size in before.items()):
            before = {}
        for task, size in sample.sent_to.items():
            pair, more = (sample.task, task), size - before.get(task, 0.0)
            self._sent[pair] = self._sent.get(pair, 0.0) + more
            if more and sample.time > at:
                size_before, seconds = self._timed.get(pair, (0.0, 0.0))
                self._timed[pair] = size_before + more, seconds + sample.time - at
        return True

    def edges(self) -> list[Edge]:
        """All pairs of tasks between which something was sent, the most first."""
        edges = [
            Edge(*pair, bytes=round(size), bps=_rate(*self._timed.get(pair, (0.0, 0.0))))
            for pair, size in self._sent.items()
            if size
        ]
        return sorted(edges, key=lambda edge: (-edge.bytes, edge.sender, edge.receiver))


def edges_of(samples: Iterable[Sample]) -> list[Edge]:
    """See `Traffic.edges`."""
    traffic = Traffic()
    for sample in samples:
        traffic.add(sample)
    return traffic.edges()


def _rate(size: float, seconds: float) -> float:
    return size / seconds if seconds else 0.0
