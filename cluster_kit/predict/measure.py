"""Makes a profile out of finished runs: what they recorded of steps, bytes, CPUs and variables.

Pure: the same records give the same profile. One run gives the seconds of a step, the bytes of each
direction, and the work of ps and chief. Runs with other bandwidths and other counts of workers
tell apart what one alone cannot: what overlaps, and what grows.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from statistics import fmean, linear_regression, median, median_low, quantiles
from typing import Any

from cluster_kit.contract.events import End, Phase, Placement, Start, Step, Training
from cluster_kit.contract.times import STRAGGLER_FACTOR
from cluster_kit.errors import ManifestError, UsageError
from cluster_kit.manifest.field_types import rate_text
from cluster_kit.observe.hot_ps import without_slots
from cluster_kit.observe.progress import HUGE, Entry, number, words
from cluster_kit.observe.usage import Sample
from cluster_kit.predict.calibrate import fit
from cluster_kit.predict.limits import size
from cluster_kit.predict.models import NOT_TRAINED
from cluster_kit.predict.profile import (
    ASYNC,
    FORMAT,
    LEAST_SPEED,
    MOST_VARIABLES,
    PS_WAYS,
    RING,
    SYNC,
    WAYS,
    Profile,
    parse,
)
from cluster_kit.resolved import Cluster
from cluster_kit.roles import CHIEF, PS, ROLES, WORKER
from cluster_kit.util.nearest import proposal
from cluster_kit.util.terminal import counted

LEAST_STEPS, LEAST_S = 10, 5.0
"""Minimum steps of all workers, and seconds of training, after the first ones are left out."""
WARM_UP = 0.2
"""The part of the training, from its beginning, that is left out: tracing, first connections."""
NO_LIMIT = 100e9
"""Bits per second that are written for containers of one host without `bandwidth`: no link."""
FAINT = 0.1
"""The least part of a step by which a slower link must lengthen communication to tell anything."""
FULL = 0.8
"""From this part of a ps's link on, the speed tells of the link, not of the workers' steps."""
LEAST_PAIRS = 4
QUANTILES, LEAST_LENGTHS, MOST_STEPS_OF_A_LENGTH = 10, 20, 4
"""Of a distribution: its parts, the minimum reports, and how many steps one has at most."""
SHORTEST_LENGTH, LONGEST_LENGTH = 0.01, 1000.0
"""Of a distribution, by the mean."""
LEAST_REPORTS = 6
CLOCKED, CLOCKED_ERROR = 0.19, 0.46
"""The variance, in steps, between two counts at times that do not depend on the steps: both are
rounded down. It is 1/6; by the median of squares, as it is used here, 0.19. The standard error of
that for one pair; for n pairs it is divided by the root of n."""
MANY_STEPS = 100
APART = 1.2
"""Runs whose speeds differ by this factor tell work from what is used without training."""
NORMAL = 0.455
"""The median of a square of a normal variable with variance 1."""
SAMPLED_S = 1.2
"""By so much a time is extended so that samples, a second apart, lie outside of it."""
LONGEST_NAME = 200
LEAST_EXCHANGED = 100
"""Bytes, in both directions together, of the smallest message to a ps and its answer."""
UPDATE = "--update"
"""The argument of built-in programs that says how ps apply gradients."""
COUNTED = ("cpu_s", "rx_bytes", "tx_bytes")
"""The counters of a sample, in the order in which `Used` has them."""
_PART = re.compile(r"/part_\d+$")


@dataclass(frozen=True)
class Used:
    """What one task used while the workers trained: CPU seconds, bytes received and sent."""

    cpu_s: float = 0.0
    received: float = 0.0
    sent: float = 0.0
    idle_cpus: float = 0.0
    """Busy CPUs before training began."""


class TooShort(UsageError):
    """A run has too few steps for a profile."""


class Alone(UsageError):
    """A run has ps, and its workers trained without them."""


@dataclass(frozen=True)
class Figures:
    """What one run measured.

    `steps` are those of all workers in `seconds`; `by_worker` those of each. `used` is by task.
    `cpus` are the limits of a role (`worker`, `ps`, `chief`), `bandwidth` and `ps_bandwidth` bits
    per second; None: no limit.
    """

    name: str
    way: str
    workers: int
    ps: int
    batch: int
    counts_images: bool
    """Whether the program reported its batch; otherwise a step counts as one image."""
    steps: float
    seconds: float
    by_worker: Mapping[str, float]
    spread: float | None
    used: Mapping[str, Used]
    trainers: tuple[str, ...]
    coordinator: str
    cpus: Mapping[str, float | None]
    bandwidth: float | None
    ps_bandwidth: float | None
    variables: tuple[Mapping[str, Any], ...]
    placement: str
    quantiles: tuple[float, ...] = ()
    """Of the seconds of a step by their mean, at equal distances; empty: too few reports."""

    @property
    def images_per_s(self) -> float:
        return self.steps * self.batch / self.seconds

    @property
    def straggler(self) -> tuple[str, float] | None:
        """The worker that is more than STRAGGLER_FACTOR times slower than the median of the others,
        and its speed by theirs; None if there is none."""
        if len(self.by_worker) < 2:
            return None
        task = min(self.by_worker, key=self.by_worker.__getitem__)
        usual = median_low(steps for name, steps in self.by_worker.items() if name != task)
        if self.by_worker[task] * STRAGGLER_FACTOR >= usual:
            return None
        return task, max(LEAST_SPEED, float(f"{self.by_worker[task] / usual:.2g}"))

    def per_step(self, of: str) -> float | None:
        """A worker's `cpu_s`, `received` or `sent` of one step; None if it was not recorded."""
        used = [self.used[name] for name in self.trainers if name in self.used]
        steps = sum(self.by_worker.get(n, 0.0) for n in self.trainers if n in self.used)
        if not used or not steps:
            return None
        return float(sum(getattr(one, of) for one in used) / steps)

    def of_servers(self, of: str) -> float | None:
        """The ps' `cpu_s`, `received` or `sent` of one step, all ps together."""
        if not self.used_by_servers:
            return None
        return float(sum(getattr(one, of) for one in self.used_by_servers) / self.steps)

    @property
    def used_by_servers(self) -> list[Used]:
        """What each ps used."""
        return [one for name, one in self.used.items() if name.startswith(f"{PS.name}-")]

    @property
    def idle_s(self) -> float:
        """The ps' CPU seconds of one step that they would have used without training."""
        idle = sum(one.idle_cpus for one in self.used_by_servers)
        return idle * self.seconds / self.steps


def figures_of(
    cluster: Cluster,
    entries: Sequence[Entry],
    samples: Sequence[Sample],
    *,
    name: str = "",
    way: str | None = None,
    batch: int | None = None,
) -> Figures:
    """What a run measured.

    Args:
        cluster: what ran, with its limits.
        entries, samples: of its tasks, oldest first.
        name: of the run, for the profile.
        way, batch: if the run does not say them.
    Raises:
        UsageError: the run is too short, or lacks what a profile needs.
    """
    name = name or cluster.name
    if way is not None and way not in WAYS:
        raise UsageError(f"--way {way}: not known", proposal(way, WAYS))
    leader = cluster.leader
    coordinated = cluster.style == "coordinator"
    trainers = [
        task
        for task in cluster.tasks
        if ROLES[task.role].trains
        and task.role != PS.name
        and not (coordinated and task.name == leader.name)
    ]
    servers = [task for task in cluster.tasks if task.role == PS.name]
    if not trainers:
        raise UsageError(
            f"{name} has no worker, so no step was measured",
            "measure a run with worker = 1 or more",
        )
    if way in PS_WAYS and not servers:
        raise UsageError(f"--way {way}: {name} has no ps", "leave --way out")
    attempts = sum(e.task == leader.name and isinstance(e.event, Start) for e in entries)
    part = f"{name}, since {leader.name} was started again," if attempts > 1 else name
    entries = _last_attempt(entries, leader.name)
    _refuse_restarted(name, entries, [task.name for task in trainers])
    series, together = _series(entries, [t.name for t in trainers], leader.name, coordinated)
    spans = _spans(entries, leader.name)
    stretches = {task: list(_stretches(points, spans)) for task, points in series.items()}
    _refuse_without_steps(part, stretches)
    begin, end = _window(part, stretches, together)
    parts = [(max(a, begin), min(b, end)) for a, b in spans if min(b, end) > max(a, begin)]
    if not parts:  # times that run backwards
        raise _too_short(part, 0, 0.0)
    by_worker = {task: _steps_in(points, parts) for task, points in series.items()}
    if together:  # the leader counts rounds in which each worker makes a step
        rounds = by_worker[leader.name if leader.name in by_worker else next(iter(by_worker))]
        by_worker = {task.name: rounds for task in trainers}
    seconds = sum(b - a for a, b in parts)
    steps = sum(by_worker.values())
    if steps < LEAST_STEPS or seconds < LEAST_S:
        raise _too_short(part, steps, seconds)
    known = _batch_of(entries, leader.name)
    found_way = way or _way_of(cluster, series, entries, len(trainers))
    images = batch or _of_one_worker(known, found_way, len(trainers)) or 1
    before = min(points[0][0] for points in series.values()) - LEAST_S
    variables, placement = _variables(entries, leader.name, [task.name for task in servers])
    clocked = _is_clocked(entries)
    figures = Figures(
        name=name,
        way=found_way,
        workers=len(trainers),
        ps=len(servers),
        batch=images,
        counts_images=bool(batch or known),
        steps=steps,
        seconds=seconds,
        by_worker=by_worker,
        spread=_spread(series, parts, clocked),
        used=dict(_used(cluster, samples, parts, before)),
        trainers=tuple(task.name for task in trainers),
        coordinator=leader.name if coordinated else "",
        cpus={
            WORKER.name: _most(task.cpus for task in trainers),
            PS.name: _most(task.cpus for task in servers),
            CHIEF.name: leader.cpus,
        },
        bandwidth=_most(task.bandwidth for task in trainers),
        ps_bandwidth=_most(task.bandwidth for task in servers),
        variables=tuple(variables),
        placement=placement,
        quantiles=() if clocked else _quantiles(series, parts),
    )
    _refuse_alone(figures)
    return figures


def _refuse_alone(figures: Figures) -> None:
    """Raise Alone if a step sends less than any message to a ps has."""
    sent, received = figures.per_step("sent"), figures.per_step("received")
    if figures.way not in PS_WAYS or sent is None or received is None:
        return
    if sent + received < LEAST_EXCHANGED:
        raise Alone(
            f"{figures.name}: a step exchanges nothing with the ps, so it trains without them",
            "a built-in program in graph mode does so if one task trains: measure 2 workers",
        )


# Steps: (Unix seconds, steps so far) of each worker.

Points = list[tuple[float, float]]


def _refuse_restarted(name: str, entries: Sequence[Entry], trainers: Sequence[str]) -> None:
    """Raise UsageError if a worker's program was started again while the others trained on."""
    started = Counter(entry.task for entry in entries if isinstance(entry.event, Start))
    again = [task for task in trainers if started[task] > 1]
    if again:
        raise UsageError(
            f"{name}: started again during the training: {', '.join(again)}; the steps after that "
            "do not show an undisturbed speed",
            "measure a run without a drill and without restarts",
        )


def _last_attempt(entries: Sequence[Entry], leader: str) -> Sequence[Entry]:
    """The entries since the leader's program was started last: counts begin at 0 there.

    Those after its end are left out: other tasks may fail over it, and be started again.
    """
    starts = [
        number
        for number, entry in enumerate(entries)
        if entry.task == leader and isinstance(entry.event, Start)
    ]
    kept = entries[starts[-1] :] if starts else entries
    ends = [n for n, one in enumerate(kept) if one.task == leader and isinstance(one.event, End)]
    return kept[: ends[0] + 1] if starts and ends else kept


def _series(
    entries: Sequence[Entry], trainers: Sequence[str], leader: str, coordinated: bool
) -> tuple[dict[str, Points], bool]:
    """The steps of each worker over time; and whether the counts are of rounds of all workers."""
    own: dict[str, Points] = {}
    of_leader: Points = []
    for entry in entries:
        event = entry.event
        if isinstance(event, Step):
            if event.own_steps is not None and entry.task in trainers:
                own.setdefault(entry.task, []).append((entry.time, event.own_steps))
            if event.step is not None and entry.task == leader:
                of_leader.append((entry.time, event.step))
    if own and all(len(own.get(task, ())) > 1 for task in trainers):
        return own, False
    if of_leader and (coordinated or len(trainers) == 1):
        share = len(trainers)  # a coordinator counts the updates of all its workers
        return {task: [(t, n / share) for t, n in of_leader] for task in trainers}, False
    return ({leader: of_leader} if of_leader else own), bool(of_leader)


def _spans(entries: Sequence[Entry], leader: str) -> list[tuple[float, float]]:
    """The times in which the leader trained; without phases, the whole time."""
    begin, end = entries[0].time if entries else 0.0, entries[-1].time if entries else 0.0
    spans: list[tuple[float, float]] = []
    since: float | None = begin
    for entry in entries:
        if entry.task != leader:
            continue
        on = (
            entry.event.name == "training"
            if isinstance(entry.event, Phase)
            else False
            if isinstance(entry.event, End)
            else None
        )
        if on and since is None:
            since = entry.time
        elif on is False and since is not None:
            spans.append((since, entry.time))
            since = None
    if since is not None:
        spans.append((since, end))
    return spans


def _stretches(points: Points, spans: Sequence[tuple[float, float]]) -> Iterator[Points]:
    """Yields the reports of each time of training, if there are two."""
    for begin, end in spans:
        first = bisect_left(points, begin, key=_time)
        inside = points[first : bisect_right(points, end, key=_time)]
        if len(inside) > 1:
            yield inside


def _refuse_without_steps(name: str, stretches: Mapping[str, Sequence[Points]]) -> None:
    without = [task for task, found in stretches.items() if not found]
    if stretches and not without:
        return
    who = f"{without[0]} of {name}" if without else name
    raise TooShort(
        f"{who} reported fewer than two steps, and a profile needs at least {LEAST_STEPS}",
        "train for longer; if the program's steps are not counted, as those of TensorFlow 1, let "
        "it write them into the file CLUSTER_KIT_PROGRESS (docs/programs.md)",
    )


def _window(
    name: str, stretches: Mapping[str, Sequence[Points]], together: bool
) -> tuple[float, float]:
    """The time in which all workers made steps, without its beginning.

    A worker that has made its last step may wait for the others, so its time ends one report
    before.
    """
    begin = max(found[0][0][0] for found in stretches.values())
    end = min(
        _busy_until([point for points in found for point in points], together)
        for found in stretches.values()
    )
    if end <= begin:
        raise _too_short(name, 0, 0.0)
    return begin + WARM_UP * (end - begin), end


def _busy_until(points: Points, together: bool) -> float:
    """The time of the last report after which a worker made more steps."""
    if together or len(points) < LEAST_REPORTS:
        return points[-1][0]
    return max((at for at, count in points if count < points[-1][1]), default=points[-1][0])


def _too_short(name: str, steps: float, seconds: float) -> TooShort:
    return TooShort(
        f"{name} is too short for a profile: {steps:.0f} steps of all workers in "
        f"{seconds:.1f} s after its first {WARM_UP:.0%}",
        f"a profile needs {LEAST_STEPS} steps and {LEAST_S:g} s: train for more steps or epochs "
        "(the classifier: `--epochs 20`)",
    )


def _time(point: tuple[float, float]) -> float:
    return point[0]


def _at(points: Points, time: float) -> float:
    """The count at a time, between two reports."""
    after = bisect_right(points, time, key=_time)
    if not after:
        return points[0][1]
    if after == len(points):
        return points[-1][1]
    (t0, n0), (t1, n1) = points[after - 1], points[after]
    return n0 + (n1 - n0) * (time - t0) / (t1 - t0) if t1 > t0 else n1


def _between(points: Points, begin: float, end: float) -> float:
    return max(0.0, _at(points, end) - _at(points, begin))


def _steps_in(points: Points, parts: Sequence[tuple[float, float]]) -> float:
    """The steps in these times.

    Reports of few steps are only exact to one step, so all of them count: by the line through them.
    """
    steps = sum(_between(points, *part) for part in parts)
    if len(parts) > 1 or steps > MANY_STEPS:
        return steps
    begin, end = parts[0]
    inside = [point for point in points if begin <= point[0] <= end]
    if len(inside) < LEAST_REPORTS or inside[0][0] == inside[-1][0]:
        return steps
    line = linear_regression([at for at, _ in inside], [count for _, count in inside])
    return max(0.0, line.slope * (end - begin))


def _pairs(
    series: Mapping[str, Points], parts: Sequence[tuple[float, float]]
) -> Iterator[list[tuple[float, float]]]:
    """Yields for each worker (seconds, steps) between its reports."""

    def within(begin: float, end: float) -> bool:
        """Whether both times are in the same part; a program can write thousands of parts."""
        after = bisect_right(parts, begin, key=_time)
        return after > 0 and end <= parts[after - 1][1]

    for points in series.values():
        pairs = [
            (b[0] - a[0], b[1] - a[1])
            for a, b in pairwise(points)
            if b[1] > a[1] and within(a[0], b[0])
        ]
        yield pairs


def _is_clocked(entries: Sequence[Entry]) -> bool:
    """Whether steps were counted at times that do not depend on them, not reported at their end."""
    return any(isinstance(entry.event, Step) and entry.event.counted for entry in entries)


def _spread(
    series: Mapping[str, Points], parts: Sequence[tuple[float, float]], clocked: bool
) -> float | None:
    """Standard deviation by mean of a step, from reports of several: their mean varies less.

    It is the median deviation that is used, so that a pause, as for a checkpoint, counts little.

    Args:
        clocked: the counts are rounded down to whole steps. Then None if this rounding is enough to
            explain how they differ, as 1, 1, 2, 1 steps of 1.5 s that are counted every 2 s.
    """
    squares: list[float] = []
    counts: list[float] = []
    for pairs in _pairs(series, parts):
        steps = sum(count for _, count in pairs)
        if len(pairs) < LEAST_PAIRS:
            continue
        mean = sum(seconds for seconds, _ in pairs) / steps
        if mean > 0:
            squares += [(s / mean - n) ** 2 / (1 if clocked else n) for s, n in pairs]
            counts += [n for _, n in pairs]
    if not squares:
        return None
    variance = median(squares) / NORMAL
    if clocked:
        rounding = CLOCKED + 2 * CLOCKED_ERROR / math.sqrt(len(squares))
        if variance <= rounding:
            return None
        variance = (variance - CLOCKED) / median(counts)
    return min(1.0, math.sqrt(variance))


def _quantiles(
    series: Mapping[str, Points], parts: Sequence[tuple[float, float]]
) -> tuple[float, ...]:
    """The quantiles of a step's seconds by their mean, 0 to 100 %.

    A report of n steps has their mean, whose deviation is 1 / sqrt(n) of that of one step, so it
    counts sqrt(n) times. Empty if reports are too few, or of too many steps to tell of one.
    """
    lengths: list[float] = []
    counts: list[float] = []
    for pairs in _pairs(series, parts):
        steps = sum(n for _, n in pairs)
        if len(pairs) < LEAST_PAIRS or not (mean := sum(s for s, _ in pairs) / steps) > 0:
            continue
        for s, n in pairs:
            length = 1 + (s / n / mean - 1) * math.sqrt(n)
            lengths.append(min(LONGEST_LENGTH, max(SHORTEST_LENGTH, length)))
            counts.append(n)
    if len(lengths) < LEAST_LENGTHS or median(counts) > MOST_STEPS_OF_A_LENGTH:
        return ()
    inner = quantiles(lengths, n=QUANTILES, method="inclusive")
    return min(lengths), *inner, max(lengths)


# What the run was.


def _batch_of(entries: Sequence[Entry], leader: str) -> float | None:
    found = [
        entry.event.images_per_step
        for entry in entries
        if isinstance(entry.event, Training)
        and entry.task == leader
        and entry.event.images_per_step
    ]
    return found[-1] if found else None


def _of_one_worker(images: float | None, way: str, workers: int) -> int | None:
    """The images of one worker's step, from those of an update."""
    if images is None:
        return None
    return max(1, round(images if way == ASYNC else images / workers))


def _way_of(
    cluster: Cluster, series: Mapping[str, Points], entries: Sequence[Entry], workers: int
) -> str:
    """How it trained: as its arguments say, or its counts, one update for a step of each worker."""
    if not any(task.role == PS.name for task in cluster.tasks):
        return RING
    arguments = cluster.leader.arguments
    for word, value in pairwise((*arguments, "")):
        told = value if word == UPDATE else word.removeprefix(f"{UPDATE}=")
        if word.startswith(UPDATE) and told in ("async", "sync"):
            return SYNC if told == "sync" else ASYNC
    updates = [
        (entry.time, entry.event.step)
        for entry in entries
        if isinstance(entry.event, Step)
        and entry.task == cluster.leader.name
        and entry.event.step is not None
    ]
    if workers < 2 or len(updates) < 2 or len(series) < workers:
        return ASYNC
    begin = max(points[0][0] for points in (updates, *series.values()))
    end = min(points[-1][0] for points in (updates, *series.values()))
    made = sum(_between(points, begin, end) for points in series.values())
    counted = _between(updates, begin, end)
    return SYNC if counted and made / counted > (1 + workers) / 2 else ASYNC


def _used(
    cluster: Cluster,
    samples: Sequence[Sample],
    parts: Sequence[tuple[float, float]],
    before: float,
) -> Iterator[tuple[str, Used]]:
    """Yields what each task used in these times; tasks without samples are left out.

    Args:
        before: a time before training.
    """
    by_task: dict[str, list[Sample]] = {}
    for sample in samples:
        by_task.setdefault(sample.task, []).append(sample)
    first = parts[0][0]
    for task in cluster.tasks:
        kept = by_task.get(task.name, [])
        if len(kept) < 2 or kept[0].time > first or kept[-1].time < parts[-1][1] - 2 * LEAST_S:
            continue
        covered = sum(max(0.0, min(end, kept[-1].time) - begin) for begin, end in parts)
        whole = sum(end - begin for begin, end in parts)
        cpu_s, received, sent = (
            sum(_between(points, *part) for part in parts) * (whole / covered if covered else 0.0)
            for points in ([(one.time, getattr(one, of)) for one in kept] for of in COUNTED)
        )
        yield task.name, Used(cpu_s, received, sent, _idle(kept, before))


def _idle(kept: Sequence[Sample], until: float) -> float:
    """The busy CPUs of the quieter half of the time before training."""
    rates = sorted(
        (later.cpu_s - one.cpu_s) / (later.time - one.time)
        for one, later in pairwise(kept)
        if later.time <= until and later.time > one.time
    )
    quiet = rates[: len(rates) // 2]
    return max(0.0, fmean(quiet)) if len(quiet) >= 3 else 0.0


def _most(values: Iterable[float | None]) -> float | None:
    """The highest of the known values; None if there is none."""
    found = [float(value) for value in values if value is not None]
    return max(found) if found else None


@dataclass(frozen=True)
class Moved:
    """What a transfer between bare servers tells of the transport; None or 0: not known.

    Bits per second of one connection and of one ps; CPU seconds of a ps for 10^9 bytes, and for one
    tensor.
    """

    connection: float | None = None
    ps: float | None = None
    cpu_per_gb: float = 0.0
    cpu_per_tensor: float = 0.0


def moved_of(metrics: Mapping[str, Any], samples: Sequence[Sample]) -> Moved:
    """What templates/measure/transfer.py reported, with the CPU that ps-0 used meanwhile."""
    found = {name: value for name in metrics if (value := number(metrics[name])) is not None}
    kept = [(one.time, one.cpu_s) for one in samples if one.task == f"{PS.name}-0"]

    def cpu_s(what: str) -> float:
        begin, end = (found.get(f"{what}_{edge}", 0.0) for edge in ("begin", "end"))
        idle = [found.get(f"idle_{edge}", 0.0) for edge in ("begin", "end")]
        begin, end = begin - SAMPLED_S, end + SAMPLED_S
        if not kept or not kept[0][0] <= begin < end <= kept[-1][0] or not idle[0] < idle[1]:
            return 0.0
        without = _between(kept, idle[0], idle[1]) / (idle[1] - idle[0])
        return max(0.0, _between(kept, begin, end) - without * (end - begin))

    large, small = found.get("large_bytes", 0.0), found.get("small_tensors", 0.0)
    return Moved(
        connection=found.get("connection_bps"),
        ps=found.get("ps_bps"),
        cpu_per_gb=cpu_s("large") / large * 1e9 if large > 0 else 0.0,
        cpu_per_tensor=cpu_s("small") / small if small > 0 else 0.0,
    )


# Variables.


def _variables(
    entries: Sequence[Entry], leader: str, servers: Sequence[str]
) -> tuple[list[dict[str, Any]], str]:
    """The variables that the leader reported, as a profile has them, and the rule of placement."""
    placements = [
        entry.event.variables
        for entry in entries
        if isinstance(entry.event, Placement) and entry.task == leader
    ]
    rows = placements[-1] if placements and isinstance(placements[-1], list) else []
    held: list[tuple[str, str, int, float | None]] = []
    for row in rows[:MOST_VARIABLES]:
        if not isinstance(row, dict):
            continue
        name, on, size = words(row.get("name")), row.get("on"), number(row.get("bytes"))
        if name and on in servers and size is not None and 0 <= size < HUGE:
            held.append((name[-LONGEST_NAME:], str(on), int(size), number(row.get("order"))))
    kept = {n for n, _ in without_slots({name: float(size) for name, _, size, _ in held})}
    held = [row for row in held if row[0] in kept]
    if all(row[3] is not None for row in held):
        held.sort(key=lambda row: row[3] or 0.0)
    else:  # a kit before `order`: as round robin would have placed them
        by_ps = [[row for row in held if row[1] == ps] for ps in servers]
        held = [row for turn in zip_longest(*by_ps) for row in turn if row is not None]
    is_split = any(_PART.search(row[0]) for row in held)
    merged: dict[str, int] = {}
    for name, _, size, _ in held:
        key = _PART.sub("", name)
        merged[key] = merged.get(key, 0) + size
    variables = [
        {"name": name, "bytes": size, **({"trained": False} if name.endswith(NOT_TRAINED) else {})}
        for name, size in merged.items()
    ]
    if is_split:
        return variables, "split"
    turns = [servers.index(row[1]) == number % len(servers) for number, row in enumerate(held)]
    if len(servers) < 2 or fmean(turns or [1]) > 0.9:
        return variables, "round-robin"
    return variables, "greedy"


# The profile.


def profile_of(runs: Sequence[Figures], moved: Moved | None = None) -> Profile:
    """The profile of these runs of one program, with different workers, ps or bandwidths.

    The smallest run gives the seconds of a step; a second one with more workers calibrates what
    grows. Two bandwidths give what overlaps.

    Args:
        runs: at least one.
        moved: what a transfer between bare servers tells, if there was one.
    Raises:
        UsageError: the runs contradict each other, or lack what a profile needs.
    """
    ordered = sorted(runs, key=lambda run: (run.workers, run.ps))
    first = ordered[0]
    for run in ordered[1:]:
        if (run.way, run.batch) != (first.way, first.batch):
            raise UsageError(
                f"{run.name} ({run.way}, batch {run.batch}) is another training than {first.name} "
                f"({first.way}, batch {first.batch})",
                "measure runs of one program with one batch",
            )
    base = _base_bandwidth(ordered)
    for throttled in (True, False):
        tables = _tables(ordered, base, throttled, moved or Moved())
        tables["measured"] = list(_rows(ordered, base, tables))
        overlap = _overlap(ordered)
        if overlap is not None:
            tables["exchange"]["overlap"] = overlap
        profile = parse(tables, first.name)
        if _agrees(profile):
            return profile
    # Even so it takes longer than what was measured: the step by its CPU, and no row calibrates.
    seconds = _seconds_by_cpu(first) or first.workers * first.seconds / first.steps
    tables["step"]["seconds"] = _seconds(seconds)
    tables["measured"] = list(_rows(ordered, base, tables))
    return parse(tables, first.name)


def _agrees(profile: Profile) -> bool:
    """Whether its measured rows leave time for computation."""
    try:
        fit(profile, 0.0, True)
    except ManifestError:
        return False
    return True


def _base_bandwidth(runs: Sequence[Figures]) -> float | None:
    """The bandwidth of most of the runs, which the machines of the profile have."""
    known = [run.bandwidth for run in runs]
    return max(known, key=lambda one: (known.count(one), -(one or NO_LIMIT)))


def _tables(
    runs: Sequence[Figures], base: float | None, throttled: bool, moved: Moved
) -> dict[str, Any]:
    """The tables of a profile, without its measured rows.

    Args:
        throttled: a CPU limit makes each thing that a ps or the chief does longer. That is so if
            it is long; a short one fits into the 100 ms for which the limit counts.
    """
    first, last = runs[0], runs[-1]
    pull, push = _bytes(last)
    exchange: dict[str, Any] = {}
    variables = [dict(one) for one in last.variables]
    size = sum(one["bytes"] for one in variables if one.get("trained", True))
    if size and pull and push:
        exchange["pull"] = min(10.0, round(pull / size, 4))
        exchange["push"] = min(10.0, round(push / size, 4))
    else:
        variables = list(_from_traffic(last, pull, push))
    if (work := _exchange_work(runs)) > 0:
        exchange["work"] = _seconds(work)
    machines: dict[str, Any] = {"bandwidth": rate_text(base or NO_LIMIT)}
    if last.cpus[WORKER.name]:
        machines["cpus"] = last.cpus[WORKER.name]
    tables: dict[str, Any] = {
        "format": FORMAT,
        "name": first.name,
        "source": _source(runs),
        "way": first.way,
        "batch": first.batch,
        "step": _lengths(runs),
        "exchange": exchange,
        "machines": machines,
        "transport": {"goodput": 1.0, **_rates(moved)},
        "variable": variables,
    }
    if first.way in PS_WAYS:
        tables["placement"] = last.placement
        work = _apply(runs, throttled)
        limit = min(1.0, (last.cpus[PS.name] if throttled else None) or 1.0)
        serialising = _serialising(moved, pull + push, len(variables), work * limit)
        tables["transport"] |= {key: _seconds(cpu / limit) for key, (cpu, _) in serialising.items()}
        tables[PS.name] = {
            "apply": _seconds(max(0.0, work - sum(cpu for _, cpu in serialising.values()) / limit))
        }
        if last.ps_bandwidth and last.ps_bandwidth != last.bandwidth:
            tables[PS.name]["bandwidth"] = rate_text(last.ps_bandwidth)
        if (dispatch := _dispatch(runs, throttled)) > 0:
            tables[CHIEF.name] = {"dispatch": _seconds(dispatch)}
    seconds = _seconds_by_cpu(first)
    if _is_full(first, tables) and seconds is not None:
        tables["step"]["seconds"] = _seconds(seconds)
    return tables


def _rates(moved: Moved) -> dict[str, str]:
    rates = {"connection": moved.connection, PS.name: moved.ps}
    return {key: rate_text(float(f"{bits:.3g}")) for key, bits in rates.items() if bits}


def _serialising(
    moved: Moved, transferred: float, variables: int, most: float
) -> dict[str, tuple[float, float]]:
    """The keys of `transport` for the CPU of serialisation, each with a ps's seconds of one step.

    Args:
        transferred: bytes of a step, both directions.
        variables: how many there are; each is pulled and pushed.
        most: the ps's CPU seconds of a step, of which this is a part.
    """
    by_key = {
        "cpu_per_gb": (moved.cpu_per_gb, moved.cpu_per_gb * transferred / 1e9),
        "cpu_per_tensor": (moved.cpu_per_tensor, moved.cpu_per_tensor * 2 * variables),
    }
    together = sum(of_step for _, of_step in by_key.values())
    part = min(1.0, most / together) if together else 0.0
    return {key: (a * part, b * part) for key, (a, b) in by_key.items() if b * part > 0}


def _lengths(runs: Sequence[Figures]) -> dict[str, Any]:
    """How the seconds of a step differ: one worker alone waits for none."""
    alone = [run for run in runs if run.workers == 1] or [runs[-1]]
    for run in (*alone, runs[-1]):
        if run.quantiles:
            return {"relative_quantiles": [float(f"{one:.3g}") for one in run.quantiles]}
    for run in (*alone, runs[-1]):
        if run.spread is not None:
            return {"spread": round(run.spread, 4)}
    return {}


def _bytes(run: Figures) -> tuple[float, float]:
    """The bytes of one worker's step on the wire: those that it gets, and those that it sends."""
    received, sent = run.per_step("received") or 0.0, run.per_step("sent") or 0.0
    if run.way in PS_WAYS:
        return received, sent
    if run.workers < 2:
        return 0.0, 0.0
    whole = (received + sent) / 2 / (2 * (run.workers - 1) / run.workers)
    return whole, whole


def _exchange_work(runs: Sequence[Figures]) -> float:
    """The seconds of an all-reduce among two on a worker's own CPUs; 0 if they do not tell.

    If they are all that limits a worker alone, the CPU that its messages take makes a step longer.
    """
    alone = next((run for run in runs if run.workers == 1), None)
    if alone is None or alone.way in PS_WAYS:
        return 0.0
    step, before = _seconds_by_cpu(alone), alone.seconds / alone.steps
    more = next((run for run in runs if run.workers > 1 and run.bandwidth == alone.bandwidth), None)
    both = _seconds_by_cpu(more) if more is not None else None
    if step is None or both is None or more is None or step < FULL * before:
        return 0.0
    return max(0.0, both - step) * more.workers / (2 * (more.workers - 1))


def _from_traffic(run: Figures, pull: float, push: float) -> Iterator[dict[str, Any]]:
    """Yields stand-ins for unknown variables: as many bytes as each ps moves, or all workers."""
    if not pull or not push:
        alone = run.workers < 2 and run.way not in PS_WAYS
        why = (
            "one worker alone exchanges nothing"
            if alone
            else "its bytes were not recorded, or were not exchanged"
        )
        raise UsageError(
            f"{run.name}: {why}, so the size of its gradients is not known",
            "measure a run with worker = 2 or more"
            if alone
            else "measure a run on an engine that counts bytes (docs/outcome.md)",
        )
    if run.way not in PS_WAYS:
        yield {"name": "all variables", "bytes": round(push)}
        return
    shares = {
        name: one.sent for name, one in run.used.items() if name.startswith(f"{PS.name}-")
    } or {"ps-0": 1.0}
    total = sum(shares.values()) or 1.0
    for name, sent in shares.items():
        part = max(1e-3, sent / total)
        yield {
            "name": f"variables of {name}",
            "bytes": max(1, round(push * part)),
            "pull": max(1, round(pull * part)),
            "push": max(1, round(push * part)),
        }


def _apply(runs: Sequence[Figures], throttled: bool) -> float:
    """The seconds of a ps for one gradient of all variables, with what it sends and receives."""
    last = runs[-1]
    points = [
        (run.ps, run.steps / run.seconds, cpu * run.steps / run.seconds)
        for run in runs
        if (cpu := run.of_servers("cpu_s")) is not None
    ]
    work = _work(points, last.idle_s * last.steps / last.seconds)
    return work / min(1.0, (last.cpus[PS.name] if throttled else None) or 1.0)


def _dispatch(runs: Sequence[Figures], throttled: bool) -> float:
    """The chief's seconds for one step of a worker."""
    last = runs[-1]
    points = [
        (0, run.steps / run.seconds, run.used[run.coordinator].cpu_s / run.seconds)
        for run in runs
        if run.coordinator in run.used
    ]
    return _work(points, 0.0) / min(1.0, (last.cpus[CHIEF.name] if throttled else None) or 1.0)


def _work(points: Sequence[tuple[int, float, float]], idle: float) -> float:
    """The CPU seconds of one step, from (ps, steps per second, CPUs) of each run; 0 if unknown.

    Several runs with the same ps give a line: what is used without training is not work. Otherwise
    `idle` CPUs are that.
    """
    if not points:
        return 0.0
    ps, rate, cpus = points[-1]
    alone = cpus / rate
    same = [(r, c) for p, r, c in points if p == ps]
    low, high = min(same), max(same)
    if high[0] > APART * low[0]:
        line = linear_regression([r for r, _ in same], [c for _, c in same])
        if line.slope > 0:
            return min(alone, line.slope)
    return max(0.0, alone - idle / rate)


def _seconds_by_cpu(run: Figures) -> float | None:
    """The seconds of a step by its CPU and the worker's limit; None if it has none."""
    cpu, limit = run.per_step("cpu_s"), run.cpus[WORKER.name]
    return cpu / limit if cpu and limit else None


def _is_full(run: Figures, tables: Mapping[str, Any]) -> bool:
    """Whether the fullest ps's link, or the worker's own, is nearly all that the run used."""
    link = run.ps_bandwidth or run.bandwidth
    if run.way not in PS_WAYS or not link:
        return False
    rates = [max(one.sent, one.received) * 8 / run.seconds / link for one in run.used_by_servers]
    return max(rates, default=0.0) > FULL


def _rows(
    runs: Sequence[Figures], base: float | None, tables: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yields each run as a measured row; the smallest of each count calibrates, at most two."""
    calibrating: set[int] = set()
    known = "seconds" in tables["step"]
    for run in runs:
        row: dict[str, Any] = {
            "workers": run.workers,
            "images_per_s": float(f"{run.images_per_s:.5g}"),
        }
        if run.way in PS_WAYS:
            row[PS.name] = run.ps
        if run.straggler:
            row["slowest"] = run.straggler[1]
        if run.bandwidth != base:
            row["bandwidth"] = rate_text(run.bandwidth or NO_LIMIT)
        elif run.workers not in calibrating and len(calibrating) < 2 and not known:
            calibrating.add(run.workers)
            row["calibrate"] = True
        yield row


def _overlap(runs: Sequence[Figures]) -> float | None:
    """The part of the communication that hides, by two bandwidths of the same counts."""
    for run in runs:
        for other in runs:
            same = (run.workers, run.ps) == (other.workers, other.ps)
            if not same or not (run.bandwidth or NO_LIMIT) < (other.bandwidth or NO_LIMIT):
                continue
            moved = sum(_bytes(run))
            if run.way not in PS_WAYS:
                if run.workers < 2:
                    continue
                moved *= (run.workers - 1) / run.workers
            less = 8 * moved * (1 / (run.bandwidth or NO_LIMIT) - 1 / (other.bandwidth or NO_LIMIT))
            slower = run.workers * (run.seconds / run.steps - other.seconds / other.steps)
            if less > FAINT * run.workers * other.seconds / other.steps:
                return round(min(1.0, max(0.0, 1 - slower / less)), 3)
    return None


def _source(runs: Sequence[Figures]) -> str:
    parts = [
        f"{run.name}: {counted(run.workers, WORKER.name)}"
        + (f", {run.ps} ps" if run.ps else "")
        + f", {run.steps:.0f} steps in {run.seconds:.0f} s"
        for run in runs
    ]
    text = "; ".join(parts)
    if not runs[0].counts_images:
        text += "; the program reports no batch: a step counts as one image"
    if not runs[-1].bandwidth:
        text += "; no bandwidth limit: containers of one host have no link between them"
    return text


def _seconds(seconds: float) -> float:
    return float(f"{seconds:.4g}")


OF_STEPS = "steps/s of all workers together (the program reports no batch: --batch)"


def sentences(run: Figures) -> Iterator[str]:
    """Yields what a run measured, for people."""
    counts = counted(run.workers, WORKER.name)
    counts += f", {run.ps} ps" if run.ps else ""
    unit = "images/s" if run.counts_images else OF_STEPS
    counts += f", {rate_text(run.bandwidth)}" if run.bandwidth else ""
    yield f"{counts} ({run.way}): {run.images_per_s:,.5g} {unit} over {run.seconds:.0f} s"
    parts = [f"{run.workers * run.seconds / run.steps:.3g} s"]
    if (cpu := run.per_step("cpu_s")) is not None:
        parts.append(f"{cpu:.3g} s of CPU")
    if (received := run.per_step("received")) is not None:
        parts.append(f"{size(received)} received, {size(run.per_step('sent') or 0.0)} sent")
    yield f"a step of one worker: {', '.join(parts)}"
    parts = []
    if run.ps and (cpu := run.of_servers("cpu_s")) is not None:
        parts.append(f"the ps use {cpu:.3g} s of CPU")
    if run.coordinator in run.used:
        parts.append(f"the chief {run.used[run.coordinator].cpu_s / run.steps:.3g} s of CPU")
    if parts:
        yield f"for it {' and '.join(parts)}"
    if run.straggler:
        task, speed = run.straggler
        yield f"{task} has {speed:g} of the others' speed; the profile says so (`slowest`)"
