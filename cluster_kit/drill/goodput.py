"""Measures the goodput of a replayed trace, and predicts it from the trace's own intervals. Pure.

Goodput is useful steps / possible steps. Both are counted from the leader's first report of a step
to its last one: useful are the steps in between, each counted once, however often it was done;
possible are those at the undisturbed rate.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from math import inf
from typing import Any

from rich.table import Table
from rich.text import Text

from cluster_kit.drill.fault_plan import starts_of, steps
from cluster_kit.drill.measure import Result
from cluster_kit.drill.trace import Absence, Replayed, stops
from cluster_kit.observe.state import RunState
from cluster_kit.predict.failures import Away, checkpoint_interval, replay
from cluster_kit.resolved import Cluster
from cluster_kit.roles import CHIEF, WORKER
from cluster_kit.util.terminal import duration

RECOVERED = 0.8
"""A training has recovered if it makes this part of the undisturbed rate again."""
WINDOW_S = 5.0
"""Seconds over which that rate is measured."""
ENOUGH_S = 5.0
"""Seconds of undisturbed training without which its rate is not known."""


@dataclass(frozen=True)
class Met:
    """An absence as it was: seconds since the first step, and what followed.

    `back_s` is None if the task did not come back before the end; `recovered_after_s` is counted
    from the return until the training is as fast again as before, None if it never was;
    `steps_redone` is None if the training never continued.
    """

    number: int
    machine: str
    task: str
    left_s: float
    back_s: float | None
    recovered_after_s: float | None
    steps_redone: int | None


@dataclass(frozen=True)
class Saving:
    """Seconds between checkpoints and for one, as they were; and the best interval.

    `best_every_s` and `mtbf_s` are for this run, `best_at_trace_speed_s` and
    `mtbf_at_trace_speed_s` for the trace without the speedup. None: unknown, or no absence stops
    the training.
    """

    every_s: float | None = None
    cost_s: float | None = None
    mtbf_s: float | None = None
    best_every_s: float | None = None
    mtbf_at_trace_speed_s: float | None = None
    best_at_trace_speed_s: float | None = None


@dataclass(frozen=True)
class Goodput:
    """The goodput of a replay; without figures, `unknown` says why.

    `predicted` is what the model says for the same absences, `restart_s` the time to recover that
    it was given: that of the first absence. `predicted_at_trace_speed` is for the trace without
    the speedup.
    """

    absences: tuple[Met, ...]
    not_replayed: int
    saving: Saving
    measured: float | None = None
    useful_steps: int = 0
    possible_steps: float = 0.0
    redone_steps: int = 0
    steps_per_s: float | None = None
    seconds: float = 0.0
    restart_s: float | None = None
    predicted: float | None = None
    predicted_redone_steps: float | None = None
    predicted_at_trace_speed: float | None = None
    unknown: str = ""

    def facts(self) -> dict[str, Any]:
        """The goodput's part of drill.json."""
        rounded: dict[str, Any] = _rounded(asdict(self))
        return {**rounded, "sentences": list(lines(self))}


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, Mapping):
        return {key: _rounded(one) for key, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, tuple | list) else value


def goodput(
    written: Replayed,
    cluster: Cluster,
    results: Sequence[Result],
    seen: RunState,
    saves: Sequence[float],
) -> Goodput:
    """The goodput of a run that a trace was replayed on.

    Args:
        results: of each absence, in the order of the trace.
        saves: Unix times at which checkpoints were completed.
    """
    reports = _new_steps(seen)
    if len(reports) < 2:
        return Goodput((), len(results), Saving(), unknown="the leader has reported no steps")
    began, ended = reports[0][0], reports[-1][0]
    spans = [
        (result, absence, _back(result, seen))
        for result, absence in zip(results, written.absences, strict=True)
        if result.time is not None and result.time < ended
    ]
    left = [result.time or 0.0 for result, _, _ in spans]
    first = min([*left, ended])
    rate = _rate(reports, [(began, first)])
    recovered = [_recovered(reports, back, left, rate) for _, _, back in spans]
    returns = list(_returns(seen))
    calm = [(began, first)]
    for at in recovered:
        if at is not None and not any(_is_away(other, at) for other in spans):
            until = min((moment for moment in left if moment > at), default=ended)
            calm.append((at, until))
    rate = _rate(reports, _merged(calm))
    met = tuple(
        Met(
            result.fault.number,
            absence.machine,
            absence.task,
            (result.time or 0.0) - began,
            None if back is None else back - began,
            None if at is None or back is None else at - back,
            None if result.steps_lost is None else _redone(returns, result.time or 0.0, left),
        )
        for (result, absence, back), at in zip(spans, recovered, strict=True)
    )
    redone, useful = sum(steps for _, steps in returns), reports[-1][1] - reports[0][1]
    seconds = ended - began
    if rate is None:
        unknown = f"less than {ENOUGH_S:g} s of training were undisturbed: their rate is not known"
        return Goodput(met, len(results) - len(met), Saving(), seconds=seconds,
                       useful_steps=useful, redone_steps=redone, unknown=unknown)  # fmt: skip
    known = [one.recovered_after_s for one in met if one.recovered_after_s is not None]
    restart = known[0] if known else None
    every, cost = _saving(saves, reports, rate, began)
    workers = _workers(cluster)
    away = [Away(one.task, one.left_s, one.back_s, stops(cluster, one.task)) for one in met]
    predicted = None if restart is None else replay(away, seconds, workers, restart, every)
    at_trace_speed = None
    true = [Away(one.task, one.left, one.back, stops(cluster, one.task)) for one in
            written.absences]  # fmt: skip
    if restart is not None and written.length_s > 0:
        at_trace_speed = replay(true, written.length_s, workers, restart, every)
    return Goodput(
        met,
        len(results) - len(met),
        Saving(every, cost, *_best(away, seconds, cost), *_best(true, written.length_s, cost)),
        measured=useful / (rate * seconds),
        useful_steps=useful,
        possible_steps=rate * seconds,
        redone_steps=redone,
        steps_per_s=rate,
        seconds=seconds,
        restart_s=restart,
        predicted=predicted.share if predicted else None,
        predicted_redone_steps=predicted.redone_s * rate if predicted else None,
        predicted_at_trace_speed=at_trace_speed.share if at_trace_speed else None,
    )


def _new_steps(seen: RunState) -> list[tuple[float, int]]:
    """(Unix time, highest step so far) of each of the leader's reports."""
    highest, reports = 0, list[tuple[float, int]]()
    for moment, step in sorted(steps(seen)):
        highest = max(highest, step)
        reports.append((moment, highest))
    return reports


def _returns(seen: RunState) -> Iterator[tuple[float, int]]:
    """Yields each return to a checkpoint: its Unix time, and the steps that are done again."""
    highest = last = 0
    starts = starts_of(seen)
    before: float = 0.0
    for moment, step in steps(seen):
        begun = any(before < start <= moment for start in starts)
        if step < highest and (begun or step < last):
            yield moment, highest - step
            highest = step
        highest, last, before = max(highest, step), step, moment


def _redone(returns: Sequence[tuple[float, int]], since: float, left: Sequence[float]) -> int:
    """The steps that were done again between an absence and the next one, so that all rows
    together are the total."""
    until = min((moment for moment in left if moment > since), default=inf)
    return sum(steps for moment, steps in returns if since <= moment < until)


def _back(result: Result, seen: RunState) -> float | None:
    """The Unix time at which the task ran again; None if it did not."""
    since = result.time or 0.0
    return next((time for time in seen.starts(result.fault.task) if time > since), None)


def _is_away(span: tuple[Result, Absence, float | None], moment: float) -> bool:
    result, _, back = span
    return (result.time or 0.0) <= moment < (inf if back is None else back)


def _rate(
    reports: Sequence[tuple[float, int]], spans: Sequence[tuple[float, float]]
) -> float | None:
    """Steps per second in these spans of time, counted between reports; None if too short."""
    seconds, made = 0.0, 0
    for begin, end in spans:
        inside = [(moment, step) for moment, step in reports if begin <= moment <= end]
        if len(inside) > 1:
            seconds += inside[-1][0] - inside[0][0]
            made += inside[-1][1] - inside[0][1]
    return made / seconds if seconds >= ENOUGH_S and made else None


def _recovered(
    reports: Sequence[tuple[float, int]],
    back: float | None,
    left: Sequence[float],
    rate: float | None,
) -> float | None:
    """The Unix time of the first report after the return from which the training is fast again.

    It has to be before the next machine leaves.
    """
    if back is None or rate is None:
        return None
    until = min((moment for moment in left if moment > back), default=reports[-1][0])
    after = [(moment, step) for moment, step in reports if back <= moment <= until]
    for moment, step in after:
        later = [one for one in after if one[0] > moment]
        window = [one for one in later if one[0] <= moment + WINDOW_S] or later[:1]
        if window and window[-1][1] - step >= RECOVERED * rate * (window[-1][0] - moment):
            return moment
    return None


def _merged(spans: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The spans without overlaps."""
    merged: list[tuple[float, float]] = []
    for begin, end in sorted(spans):
        if merged and begin < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged


def _workers(cluster: Cluster) -> int:
    """The tasks that share the work: the workers, and a chief that trains."""
    coordinator = cluster.style == "coordinator"
    return max(
        1, len(cluster.of(WORKER.name)) + (0 if coordinator else len(cluster.of(CHIEF.name)))
    )


def _saving(
    saves: Sequence[float], reports: Sequence[tuple[float, int]], rate: float, began: float
) -> tuple[float | None, float | None]:
    """(Seconds between two checkpoints, seconds that one holds the training up); None if
    unknown."""
    moments = sorted(moment for moment in saves if moment >= began)
    between = [after - before for before, after in pairwise(moments) if after > before]
    costs = [
        (after[0] - before[0]) - (after[1] - before[1]) / rate
        for moment in moments
        for before, after in pairwise(reports)
        if before[0] <= moment < after[0] and after[1] > before[1]
    ]
    every = statistics.median(between) if between else None
    return every, max(0.0, statistics.median(costs)) if costs else None


def _best(
    absences: Sequence[Away], seconds: float, cost: float | None
) -> tuple[float | None, float | None]:
    """(Mean seconds between departures that stop the training, best seconds between checkpoints).

    None if there is none, or if the cost of a checkpoint is not known.
    """
    departures = sum(one.stops and one.left <= seconds for one in absences)
    if not departures or seconds <= 0:
        return None, None
    mtbf = seconds / departures
    return mtbf, checkpoint_interval(mtbf, cost) if cost else None


COLUMNS = ("absence", "left", "away", "as fast again after", "steps redone")


def table(found: Goodput) -> Table:
    """A row for each absence."""
    rendered = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in COLUMNS:
        rendered.add_column(heading, justify="left" if heading == "absence" else "right")
    for one in found.absences:
        away = "to the end" if one.back_s is None else f"{one.back_s - one.left_s:.1f} s"
        again = "-" if one.recovered_after_s is None else f"{one.recovered_after_s:.1f} s"
        redone = "-" if one.steps_redone is None else str(one.steps_redone)
        name = Text(f"{one.number} {one.task} ({one.machine})")
        rendered.add_row(name, f"{one.left_s:.1f} s", away, again, redone)
    return rendered


def lines(found: Goodput) -> Iterator[str]:
    """Yields the goodput, what was predicted, and how often to save, as sentences."""
    if found.measured is None:
        yield f"goodput: unknown, {found.unknown}"
    else:
        predicted = "" if found.predicted is None else f"; predicted {found.predicted:.0%}"
        yield (
            f"goodput {found.measured:.0%}: {found.useful_steps:,} steps of "
            f"{found.possible_steps:,.0f} that {duration(found.seconds)} allow at "
            f"{found.steps_per_s:.3g} steps/s{predicted}"
        )
        yield f"steps done twice: {found.redone_steps:,}"
    if found.predicted_at_trace_speed is not None:
        yield f"without the speedup: predicted {found.predicted_at_trace_speed:.1%}"
    if found.not_replayed:
        absences = "absence was" if found.not_replayed == 1 else "absences were"
        yield f"{found.not_replayed} {absences} not replayed: the training had ended"
    yield from _saving_lines(found.saving)


def _saving_lines(saving: Saving) -> Iterator[str]:
    if saving.mtbf_at_trace_speed_s is None:
        return
    was = "" if saving.every_s is None else f" (this run: every {duration(saving.every_s)})"
    if saving.best_at_trace_speed_s is None:
        yield f"how often to save: unknown, since it is not known how long saving takes{was}"
        return
    yield (
        f"save every {duration(saving.best_at_trace_speed_s)}{was}: one departure in "
        f"{duration(saving.mtbf_at_trace_speed_s)} stops the training, and saving takes "
        f"{saving.cost_s:.2g} s (Young/Daly)"
    )
