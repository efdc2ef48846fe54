"""The current, average and peak usage of tasks, from their `<task>.usage` files. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from cluster_kit.contract import events
from cluster_kit.observe.progress import Entry, number

LONGEST_GAP_S = 30.0
"""A task that wrote nothing for this many seconds did not run: its rate in that time is unknown."""
SHORTEST_S = 0.2
"""Minimum seconds for a rate: CPU time is counted in hundredths of a second."""
MOST = 1e18


@dataclass(frozen=True)
class Sample:
    """One line of a usage file; `time` in Unix seconds, counts since the container's start.

    `sent_to` are bytes by task, None if this line does not say; `gpu_busy` is the mean share of its
    GPUs (0 to 1), `gpu_memory` the bytes on all of them; both are None if no GPU reports them.
    """

    task: str
    time: float
    cpu_s: float
    memory: float
    rx_bytes: float
    tx_bytes: float
    sent_to: Mapping[str, float] | None = None
    gpu_busy: float | None = None
    gpu_memory: float | None = None


@dataclass(frozen=True)
class Usage:
    """The current usage of one task: busy CPUs, bytes, bytes per second in the last second, and the
    share of time in which its GPUs compute (0 to 1). None: unknown, or not yet known."""

    memory: float
    cpus: float | None = None
    rx_bps: float | None = None
    tx_bps: float | None = None
    gpu_busy: float | None = None


@dataclass(frozen=True)
class Use:
    """The usage of one task, now and so far.

    `mean` and `peak` figures are over the time in which the task ran.
    """

    last: Sample
    now: Usage
    seconds: float = 0.0
    cpu_s: float = 0.0
    memory_s: float = 0.0
    """Bytes times seconds."""
    gpu_s: float = 0.0
    cpus_peak: float | None = None
    memory_peak: float = 0.0
    bps_peak: float | None = None
    gpu_memory_peak: float | None = None
    rx_before: float = 0.0
    """Bytes received before the container's last start, when the count began at zero again."""
    tx_before: float = 0.0

    @property
    def cpus_mean(self) -> float | None:
        return self.cpu_s / self.seconds if self.seconds else None

    @property
    def memory_mean(self) -> float:
        return self.memory_s / self.seconds if self.seconds else self.now.memory

    @property
    def gpu_busy_mean(self) -> float | None:
        known = self.now.gpu_busy is not None and self.seconds
        return self.gpu_s / self.seconds if known else None


def sample_of(entry: Entry) -> Sample | None:
    """The sample in a line; None if the line is not a sample, as if a user's program wrote it."""
    used = entry.event
    if not isinstance(used, events.Usage):
        return None
    counts = [_number(one) for one in (used.cpu_s, used.memory, used.rx_bytes, used.tx_bytes)]
    if None in counts:
        return None
    cpu_s, memory, received, sent = (count or 0.0 for count in counts)
    busy, gpu_memory = _gpus(used.gpus)
    sent_to = _bytes_by_task(used.sent_to) if isinstance(used.sent_to, dict) else None
    return Sample(entry.task, entry.time, cpu_s, memory, received, sent, sent_to, busy, gpu_memory)


@dataclass(frozen=True)
class Rates:
    """The rates between two samples of a task, `seconds` apart: busy CPUs, bytes per second."""

    seconds: float
    cpus: float
    rx_bps: float
    tx_bps: float


def rates_between(earlier: Sample, later: Sample) -> Rates | None:
    """The rates; None if the task was restarted between the samples, or wrote nothing for long."""
    seconds = later.time - earlier.time
    grew = (
        later.cpu_s - earlier.cpu_s,
        later.rx_bytes - earlier.rx_bytes,
        later.tx_bytes - earlier.tx_bytes,
    )
    if not 0 < seconds <= LONGEST_GAP_S or min(grew) < 0:
        return None
    return Rates(seconds, *(count / seconds for count in grew))


def after(use: Use | None, new: Sample) -> Use:
    """A task's usage after one more sample."""
    if use is None:
        now = Usage(new.memory, gpu_busy=new.gpu_busy)
        return Use(new, now, memory_peak=new.memory, gpu_memory_peak=new.gpu_memory)
    rates = rates_between(use.last, new)
    last = use.last
    if new.rx_bytes < last.rx_bytes or new.tx_bytes < last.tx_bytes or new.cpu_s < last.cpu_s / 2:
        rx, tx = use.rx_before + last.rx_bytes, use.tx_before + last.tx_bytes
        use = replace(use, rx_before=rx, tx_before=tx)
    now = Usage(new.memory, gpu_busy=new.gpu_busy)
    if rates is not None and rates.seconds < SHORTEST_S:
        now = replace(use.now, memory=new.memory, gpu_busy=new.gpu_busy)
    use = replace(
        use,
        last=new,
        now=now,
        memory_peak=max(use.memory_peak, new.memory),
        gpu_memory_peak=_most(use.gpu_memory_peak, new.gpu_memory),
    )
    if rates is None or rates.seconds < SHORTEST_S:
        return use
    return replace(
        use,
        now=replace(now, cpus=rates.cpus, rx_bps=rates.rx_bps, tx_bps=rates.tx_bps),
        seconds=use.seconds + rates.seconds,
        cpu_s=use.cpu_s + rates.cpus * rates.seconds,
        memory_s=use.memory_s + new.memory * rates.seconds,
        gpu_s=use.gpu_s + (new.gpu_busy or 0.0) * rates.seconds,
        cpus_peak=_most(use.cpus_peak, rates.cpus),
        bps_peak=_most(use.bps_peak, rates.rx_bps + rates.tx_bps),
    )


def of_samples(samples: Iterable[Sample]) -> dict[str, Use]:
    """The usage of each task, by name.

    Args:
        samples: of all tasks, oldest first.
    """
    uses: dict[str, Use] = {}
    for sample in samples:
        uses[sample.task] = after(uses.get(sample.task), sample)
    return uses


def _most(one: float | None, other: float | None) -> float | None:
    return max((value for value in (one, other) if value is not None), default=None)


def _gpus(told: Any) -> tuple[float | None, float | None]:
    """The mean share and the bytes of all GPUs of a line."""
    gpus = [gpu for gpu in told if isinstance(gpu, dict)] if isinstance(told, list) else []
    busy = [share for gpu in gpus if (share := _number(gpu.get("busy"))) is not None]
    memory = [size for gpu in gpus if (size := _number(gpu.get("memory"))) is not None]
    return sum(busy) / len(busy) if busy else None, sum(memory) if memory else None


def _bytes_by_task(told: Mapping[Any, Any]) -> dict[str, float]:
    sizes = {str(task): _number(size) for task, size in told.items()}
    return {task: size for task, size in sizes.items() if size is not None}


def _number(value: Any) -> float | None:
    as_number = number(value)
    return as_number if as_number is not None and 0 <= as_number < MOST else None
