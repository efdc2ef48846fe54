"""Creates report.json: all facts that a page shows of a run, with thinned curves. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from cluster_kit.contract.events import Epoch, Evaluation, Event, Placement, Step
from cluster_kit.facts import without_kind
from cluster_kit.observe.progress import Entry, Figures, figures_of, number
from cluster_kit.observe.usage import SHORTEST_S, Rates, Sample, rates_between
from cluster_kit.report.lanes import Lane, Mark, Span, lanes_of, thinned, with_faults
from cluster_kit.report.page import Evidence, profile_facts

MOST_VALUES = 14000
"""Maximum points of all curves of a report: about 280 kB."""
FEWEST_POINTS, MOST_POINTS = 40, 600
"""Minimum and maximum points of one curve."""
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
    """The types of events with the figure, which `told` reads; () if usage samples have it."""
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
    """The points of all curves so far; `points` by figure and curve, in order of arrival.

    Args:
        tasks: names, in the order of the curves; reports of other tasks are left out.
    """

    def __init__(self, tasks: Sequence[str]) -> None:
        self._places = {name: place for place, name in enumerate(tasks)}
        self._last: dict[str, Sample] = {}
        self.points: dict[tuple[str, str], list[Point]] = {}

    def told(self, entry: Entry) -> None:
        """Add a task's report; a task that trains and validates or scores has a curve of each."""
        if entry.task not in self._places or not (
            figures_of_event := _TOLD.get(type(entry.event), ())
        ):
            return
        figures = figures_of(entry.event)
        for figure in figures_of_event:
            if figure.told and (value := number(figure.told(figures))) is not None:
                epochs = isinstance(entry.event, Epoch) and figure.id != "accuracy"
                name = f"{entry.task}, epochs" if epochs else entry.task
                self.points.setdefault((figure.id, name), []).append((entry.time, value))
        for id_, value in (("loss", figures.val_loss), ("accuracy", figures.val_accuracy)):
            if (value := number(value)) is not None:
                name = f"{entry.task}, validation"
                self.points.setdefault((id_, name), []).append((entry.time, value))

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
        """The maximum points of each curve that keep the page small."""
        return min(max(MOST_VALUES // max(len(self.points), 1), FEWEST_POINTS), MOST_POINTS)

    def charts(self) -> list[Chart]:
        """All charts that have a point, with every point."""
        keys = sorted(self.points, key=lambda key: self._places[key[1].partition(",")[0]])
        charts = [
            Chart(figure.id, figure.title, figure.unit, tuple(
                Curve(name, tuple(self.points[id_, name])) for id_, name in keys if id_ == figure.id
            ))
            for figure in FIGURES
        ]  # fmt: skip
        return [chart for chart in charts if chart.curves]


def charts_of(
    tasks: Sequence[str], entries: Sequence[Entry], samples: Sequence[Sample]
) -> list[Chart]:
    """All charts of a run that have a point, with few enough points.

    Args:
        tasks: names, in the order of the curves; reports of other tasks are left out.
        entries, samples: of the run, oldest first.
    """
    curves = Curves(tasks)
    for entry in entries:
        curves.told(entry)
    for sample in samples:
        curves.used(sample)
    return [thinned_chart(chart, curves.most) for chart in curves.charts()]


def thinned_chart(chart: Chart, most: int) -> Chart:
    """The chart with about `most` points in each curve at most: means over equal times."""
    curves = (Curve(curve.name, means(curve.points, most)) for curve in chart.curves)
    return Chart(chart.id, chart.title, chart.unit, tuple(curves))


def means(points: Sequence[Point], most: int) -> tuple[Point, ...]:
    """About `most` points at most: means over equal times."""
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


def placement_of(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """`{"name": …, "on": "ps-1", "bytes": …}` of each variable; [] if unknown."""
    placements = [entry.event.variables for entry in entries if isinstance(entry.event, Placement)]
    if not placements or not isinstance(placements[-1], list):
        return []
    variables = [
        {"name": str(one.get("name")), "on": str(one.get("on")), "bytes": number(one.get("bytes"))}
        for one in placements[-1]
        if isinstance(one, dict)
    ]
    return [one for one in variables if one["bytes"] is not None]


@dataclass(frozen=True)
class Edge:
    """The bytes from one task to another, and their mean rate in the time with traffic."""

    sender: str
    receiver: str
    bytes: int
    bps: float


class Traffic:
    """The bytes sent so far. After a restart a task's counts begin at zero; earlier bytes are added
    to them."""

    def __init__(self) -> None:
        self._sent: dict[tuple[str, str], float] = {}
        self._timed: dict[tuple[str, str], tuple[float, float]] = {}
        self._last: dict[str, tuple[float, Mapping[str, float]]] = {}

    def add(self, sample: Sample) -> bool:
        """Add a sample; returns whether it has the task's traffic to other tasks."""
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
        """All pairs of tasks with traffic between them, the largest first."""
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


FORMAT = 1
"""The version of report.json; raised if the meaning of a key changes, or a key is removed."""
_VERDICT = (
    "success", "exit_code", "reason", "blame", "message", "decided", "last_words", "cure", "notes",
)  # fmt: skip
_TASK = ("gpu_seen", "exit_code", "restarts", "oom", "rx_bytes", "tx_bytes", "usage")


def facts_of(run: Evidence) -> dict[str, Any]:
    """The facts of a run. Times are seconds since `began`, which is in Unix seconds."""
    tasks = [task.name for task in run.cluster.tasks]
    return facts_with(run, charts_of(tasks, run.entries, run.samples), edges_of(run.samples))


def facts_with(
    run: Evidence, charts: Sequence[Chart], edges: Sequence[Edge], until: float = 0.0
) -> dict[str, Any]:
    """Like `facts_of`, for callers that have counted traffic and curves themselves; the samples of
    `run` are ignored.

    Args:
        until: the Unix time of the last observation, if `run` does not have it.
    """
    began, end = period(run)
    end = max(end, until)
    lanes = _lanes(run, end)
    outcomes = {task.get("name"): task for task in run.outcome.get("tasks", ())}
    return {
        "format": FORMAT,
        "cluster": run.cluster.name,
        "run": run.name,
        "began": round(began, 3),
        "seconds": round(end - began, 3),
        "verdict": {key: run.outcome.get(key) for key in _VERDICT},
        "tasks": [
            {
                "name": task.name,
                "role": task.role,
                "ip": run.cluster.fixed_ip(task),
                "gpus": list(map(without_kind, task.gpus)),
                "leads": task.name == run.cluster.leader.name,
                **{key: outcomes.get(task.name, {}).get(key) for key in _TASK},
                "log": f"logs/{task.name}.log" if task.name in run.logs else None,
                **_lane(lanes[task.name], began),
            }
            for task in run.cluster.tasks
        ],
        "faults": [fault.facts(began) for fault in run.faults],
        "goodput": list(run.goodput),
        "scaling": None,
        "charts": [_chart(chart, began) for chart in charts],
        "traffic": traffic_facts(edges),
        "placement": placement_of(run.entries),
        "profiles": [profile_facts(profile, began) for profile in run.profiles],
        "metrics": dict(run.outcome.get("metrics") or {}),
        "timings_s": dict(run.outcome.get("timings_s") or {}),
        "subnet": str(run.cluster.subnet),
        "image": run.cluster.image,
        "style": run.cluster.style,
        "data": run.cluster.data_set,
        "source": run.cluster.source,
        "command": repeated(run.cluster.origin.command),
        "manifest": run.manifest,
        "kit": run.kit,
    }


def _lanes(run: Evidence, end: float) -> dict[str, Lane]:
    """Each task's lane, with faults and checkpoints added.

    The files of a run that was copied can have the time of the copy: such a checkpoint has no mark.
    """
    lanes = with_faults(
        lanes_of(run.cluster, run.events, run.entries, end, run.requests), run.faults, end
    )
    leader = run.cluster.leader.name
    marks = [Mark("checkpoint", at, name) for at, name in run.checkpoints if at <= end]
    lanes[leader] = replace(lanes[leader], marks=tuple(_sorted([*lanes[leader].marks, *marks])))
    return thinned(lanes)


def period(run: Evidence) -> tuple[float, float]:
    """The Unix times of the first and the last observation; (0, 0) without any."""
    times = [*(event.time for event in run.events), *(entry.time for entry in run.entries)]
    return (min(times), max(times)) if times else (0.0, 0.0)


def traffic_facts(edges: Sequence[Edge]) -> list[dict[str, Any]]:
    """The bytes between each pair of tasks, in report.json's form."""
    return [asdict(edge) | {"bps": round(edge.bps)} for edge in edges]


def points_facts(points: Sequence[tuple[float, float]], began: float) -> dict[str, list[float]]:
    """The points of a curve, in report.json's form."""
    return {
        "x": [round(at - began, 2) for at, _ in points],
        "y": [_short(value) for _, value in points],
    }


def repeated(command: str) -> str:
    """The command that runs the cluster again, made from a `render` command."""
    return command.replace("cluster-kit render", "cluster-kit up", 1)


def _lane(lane: Lane, began: float) -> Mapping[str, Any]:
    return {
        "spans": _spans(lane.spans, began),
        "over": _spans(lane.over, began),
        "marks": [
            {"kind": mark.kind, "at": round(mark.at - began, 3), "text": mark.text}
            for mark in lane.marks
        ],
    }


def _spans(spans: Sequence[Span], began: float) -> list[dict[str, Any]]:
    """The spans of a millisecond or more; shorter ones cannot be shown."""
    shown = (_span(span, began) for span in spans)
    return [span for span in shown if span["begin"] < span["end"]]


def _span(span: Span, began: float) -> dict[str, Any]:
    times = {"begin": round(span.begin - began, 3), "end": round(span.end - began, 3)}
    return {"state": str(span.state), **times, **({"text": span.text} if span.text else {})}


def _chart(chart: Chart, began: float) -> dict[str, Any]:
    return {
        "id": chart.id,
        "title": chart.title,
        "unit": chart.unit,
        "curves": [
            {"name": curve.name, **points_facts(curve.points, began)} for curve in chart.curves
        ],
    }


def _short(value: float) -> float:
    """The value rounded to a few significant digits."""
    return float(f"{value:.{DIGITS}g}")


def _sorted(marks: list[Mark]) -> list[Mark]:
    return sorted(marks, key=lambda mark: mark.at)
