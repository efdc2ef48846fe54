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


def edges_of(samples: Iterable[Sample]) -> list[Edge]:
    """All pairs of tasks between which something was sent, the most first.

    A task that was started again counts from zero: what it sent before is added.
    """
    sent: dict[tuple[str, str], float] = {}
    timed: dict[tuple[str, str], tuple[float, float]] = {}
    last: dict[str, tuple[float, Mapping[str, float]]] = {}
    for sample in samples:
        if sample.sent_to is None:
            continue
        at, before = last.get(sample.task, (sample.time, {}))
        last[sample.task] = sample.time, sample.sent_to
        if any(sample.sent_to.get(task, 0.0) < size for task, size in before.items()):
            before = {}
        for task, size in sample.sent_to.items():
            pair, more = (sample.task, task), size - before.get(task, 0.0)
            sent[pair] = sent.get(pair, 0.0) + more
            if more and sample.time > at:
                size_before, seconds = timed.get(pair, (0.0, 0.0))
                timed[pair] = size_before + more, seconds + sample.time - at
    edges = [
        Edge(*pair, bytes=round(size), bps=_rate(*timed.get(pair, (0.0, 0.0))))
        for pair, size in sent.items()
        if size
    ]
    return sorted(edges, key=lambda edge: (-edge.bytes, edge.sender, edge.receiver))


def _rate(size: float, seconds: float) -> float:
    return size / seconds if seconds else 0.0
