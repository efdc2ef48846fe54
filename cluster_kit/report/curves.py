"""Figures over time, thinned out so that a page stays small. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from cluster_kit.observe.figures import number
from cluster_kit.observe.progress import Entry
from cluster_kit.observe.usage import SHORTEST_S, Rates, Sample, rates_between

MOST_VALUES = 14000
"""Of all curves of a report together: about 280 kB."""
FEWEST_POINTS, MOST_POINTS = 40, 600
"""Of one curve, however many there are."""
DIGITS = 4

Point = tuple[float, float]


@dataclass(frozen=True)
class Curve:
    """A task's figure over time: (Unix seconds, value), oldest first."""

    name: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Chart:
    """Curves of one figure."""

    id: str
    title: str
    unit: str
    curves: tuple[Curve, ...]


def charts_of(
    tasks: Sequence[str], entries: Sequence[Entry], samples: Sequence[Sample]
) -> list[Chart]:
    """All charts of a run that have a point, each with few enough of them.

    Args:
        tasks: names, in the order of the curves; what others say is left out.
        entries, samples: of the run, oldest first.
    """
    places = {name: place for place, name in enumerate(tasks)}
    entries = sorted((e for e in entries if e.task in places), key=lambda e: places[e.task])
    samples = sorted((s for s in samples if s.task in places), key=lambda s: places[s.task])
    between = list(_between(samples))
    charts = [
        Chart("loss", "Loss", "", _told(entries, "loss", ("step", "epoch", "evaluation"))),
        Chart("accuracy", "Accuracy", "", _told(entries, "accuracy", ("epoch", "evaluation"))),
        Chart("map_50", "mAP@0.5", "", _told(entries, "map_50", ("evaluation",))),
        Chart("steps_per_s", "Steps per second", "/s", _told(entries, "steps_per_s", ("step",))),
        Chart("staleness", "Staleness of updates", "updates",
              _told(entries, "staleness", ("step", "epoch"))),
        Chart("cpus", "Busy CPUs", "CPUs", _rates(between, lambda rate: rate.cpus)),
        Chart("memory", "Memory", "bytes", _used(samples, lambda one: one.memory)),
        Chart("rx_bps", "Network, received", "bytes/s", _rates(between, lambda rate: rate.rx_bps)),
        Chart("tx_bps", "Network, sent", "bytes/s", _rates(between, lambda rate: rate.tx_bps)),
        Chart("gpu_busy", "GPU", "share", _used(samples, lambda one: one.gpu_busy)),
        Chart("gpu_memory", "GPU memory", "bytes", _used(samples, lambda one: one.gpu_memory)),
    ]  # fmt: skip
    count = sum(len(chart.curves) for chart in charts)
    most = min(max(MOST_VALUES // max(count, 1), FEWEST_POINTS), MOST_POINTS)
    return [thinned(chart, most) for chart in charts if chart.curves]


def thinned(chart: Chart, most: int) -> Chart:
    """The chart with at most about so many points in each curve: the means of equal times."""
    curves = (Curve(curve.name, _means(curve.points, most)) for curve in chart.curves)
    return Chart(chart.id, chart.title, chart.unit, tuple(curves))


def _means(points: Sequence[Point], most: int) -> tuple[Point, ...]:
    if len(points) <= most:
        return tuple(points)
    begin, width = points[0][0], (points[-1][0] - points[0][0]) / most
    groups: dict[int, list[Point]] = {}
    for point in points:
        groups.setdefault(int((point[0] - begin) / width) if width else 0, []).append(point)
    return tuple(
        (sum(at for at, _ in group) / len(group), sum(value for _, value in group) / len(group))
        for group in groups.values()
    )


def _told(entries: Iterable[Entry], field: str, events: Sequence[str]) -> tuple[Curve, ...]:
    """What tasks reported; a task that scores and trains has a curve for each."""
    found: dict[str, list[Point]] = {}
    for entry in entries:
        value = number(entry.fields.get(field))
        if entry.event not in events or value is None:
            continue
        name = entry.task
        if entry.event == "epoch" and field != "accuracy":
            name = f"{entry.task}, epochs"
        found.setdefault(name, []).append((entry.time, value))
    return _curves(found)


def _between(samples: Iterable[Sample]) -> Iterator[tuple[Sample, Rates]]:
    """Each sample of a task that has one before it, and the rates between the two."""
    last: dict[str, Sample] = {}
    for sample in samples:
        before, last[sample.task] = last.get(sample.task), sample
        rates = rates_between(before, sample) if before else None
        if rates and rates.seconds > SHORTEST_S:
            yield sample, rates


def _rates(
    between: Iterable[tuple[Sample, Rates]], of: Callable[[Rates], float]
) -> tuple[Curve, ...]:
    found: dict[str, list[Point]] = {}
    for sample, rates in between:
        found.setdefault(sample.task, []).append((sample.time, of(rates)))
    return _curves(found)


def _used(samples: Iterable[Sample], of: Callable[[Sample], float | None]) -> tuple[Curve, ...]:
    found: dict[str, list[Point]] = {}
    for sample in samples:
        if (value := of(sample)) is not None:
            found.setdefault(sample.task, []).append((sample.time, value))
    return _curves(found)


def _curves(found: dict[str, list[Point]]) -> tuple[Curve, ...]:
    return tuple(Curve(name, tuple(points)) for name, points in found.items())
