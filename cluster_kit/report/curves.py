"""Figures over time, thinned out so that a page stays small. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cluster_kit.contract.events import Epoch, Evaluation, Event, Step
from cluster_kit.observe.progress import Entry, Figures, figures_of, number
from cluster_kit.observe.usage import SHORTEST_S, Rates, Sample, rates_between

MOST_VALUES = 14000
"""The most points of all curves of a report: about 280 kB."""
FEWEST_POINTS, MOST_POINTS = 40, 600
"""The fewest and the most points of one curve."""
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


@dataclass(frozen=True)
class _Figure:
    id: str
    title: str
    unit: str
    events: tuple[type[Event], ...] = ()
    """Those that tell it, by `told`; () if samples do."""
    told: Callable[[Figures], float | None] | None = None
    rate: Callable[[Rates], float] | None = None
    used: Callable[[Sample], float | None] | None = None


FIGURES = (
    _Figure("loss", "Loss", "", (Step, Epoch, Evaluation), lambda one: one.loss),
    _Figure("accuracy", "Accuracy", "", (Epoch, Evaluation), lambda one: one.accuracy),
    _Figure("map_50", "mAP@0.5", "", (Evaluation,), lambda one: one.map_50),
    _Figure("steps_per_s", "Steps per second", "/s", (Step,), lambda one: one.steps_per_s),
    _Figure("staleness", "Staleness of updates", "updates", (Epoch,), lambda one: one.staleness),
    _Figure("cpus", "Busy CPUs", "CPUs", rate=lambda rate: rate.cpus),
    _Figure("memory", "Memory", "bytes", used=lambda one: one.memory),
    _Figure("rx_bps", "Network, received", "bytes/s", rate=lambda rate: rate.rx_bps),
    _Figure("tx_bps", "Network, sent", "bytes/s", rate=lambda rate: rate.tx_bps),
    _Figure("gpu_busy", "GPU", "share", used=lambda one: one.gpu_busy),
    _Figure("gpu_memory", "GPU memory", "bytes", used=lambda one: one.gpu_memory),
)
_TOLD = {
    event: [one for one in FIGURES if event in one.events]
    for event in {event for one in FIGURES for event in one.events}
}
_USED = [one for one in FIGURES if not one.events]


class Curves:
    """The points of all curves so far; `points` by figure and curve, in the order they came.

    Args:
        tasks: names, in the order of the curves; what others say is left out.
    """

    def __init__(self, tasks: Sequence[str]) -> None:
        self._places = {name: place for place, name in enumerate(tasks)}
        self._last: dict[str, Sample] = {}
        self.points: dict[tuple[str, str], list[Point]] = {}

    def told(self, entry: Entry) -> None:
        """Add a task's report; a task that both trains and scores has a curve for each."""
        if entry.task not in self._places or not (told := _TOLD.get(type(entry.event), ())):
            return
        figures = figures_of(entry.event)
        for figure in told:
            if figure.told and (value := number(figure.told(figures))) is not None:
                epochs = isinstance(entry.event, Epoch) and figure.id != "accuracy"
                name = f"{entry.task}, epochs" if epochs else entry.task
                self.points.setdefault((figure.id, name), []).append((entry.time, value))

    def used(self, sample: Sample) -> None:
        """Add a task's usage: now, and since the previous sample."""
        if sample.task not in self._places:
            return
        before, self._last[sample.task] = self._last.get(sample.task), sample
        rates = rates_between(before, sample) if before else None
        for figure in _USED:
            value = figure.used(sample) if figure.used else None
            if figure.rate and rates and rates.seconds > SHORTEST_S:
                value = figure.rate(rates)
            if value is not None:
                self.points.setdefault((figure.id, sample.task), []).append((sample.time, value))

    @property
    def most(self) -> int:
        """How many points each curve should have at most, so that the page stays small."""
        return min(max(MOST_VALUES // max(len(self.points), 1), FEWEST_POINTS), MOST_POINTS)

    def charts(self) -> list[Chart]:
        """All charts that have a point, with every point."""
        keys = sorted(self.points, key=lambda key: self._places[key[1].partition(",")[0]])
        found = [
            Chart(figure.id, figure.title, figure.unit, tuple(
                Curve(name, tuple(self.points[id_, name])) for id_, name in keys if id_ == figure.id
            ))
            for figure in FIGURES
        ]  # fmt: skip
        return [chart for chart in found if chart.curves]


def charts_of(
    tasks: Sequence[str], entries: Sequence[Entry], samples: Sequence[Sample]
) -> list[Chart]:
    """All charts of a run that have a point, each with few enough of them.

    Args:
        tasks: names, in the order of the curves; what others say is left out.
        entries, samples: of the run, oldest first.
    """
    curves = Curves(tasks)
    for entry in entries:
        curves.told(entry)
    for sample in samples:
        curves.used(sample)
    return [thinned(chart, curves.most) for chart in curves.charts()]


def thinned(chart: Chart, most: int) -> Chart:
    """The chart with at most about so many points in each curve: the means of equal times."""
    curves = (Curve(curve.name, means(curve.points, most)) for curve in chart.curves)
    return Chart(chart.id, chart.title, chart.unit, tuple(curves))


def means(points: Sequence[Point], most: int) -> tuple[Point, ...]:
    """At most about so many points: the means of equal times."""
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
