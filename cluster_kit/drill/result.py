"""A drill's result: facts for scripts, a table, a picture (matplotlib is optional)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from cluster_kit.contract.events import Heard, Silent
from cluster_kit.drill import goodput as replayed
from cluster_kit.drill.fault_plan import ready_at, starts_of, steps
from cluster_kit.drill.measure import Result
from cluster_kit.drill.scenario_file import Bounds, Expect
from cluster_kit.observe.lives import ran
from cluster_kit.observe.state import RunState
from cluster_kit.run.outcome import Outcome

FORMAT = 1
"""The version of drill.json; raised if the meaning of a key changes, or a key is removed."""
Span = tuple[float, float]


@dataclass(frozen=True)
class Lane:
    """The lane of one task: the times at which its container ran, and at which it was silent."""

    task: str
    ran: tuple[Span, ...]
    silent: tuple[Span, ...]


@dataclass(frozen=True)
class Lanes:
    """All lanes; `trained` has (seconds, step) points, one line for each start of the program."""

    lanes: tuple[Lane, ...]
    trained: tuple[tuple[tuple[float, int], ...], ...]
    faults: tuple[Result, ...]
    end: float


def lanes_of(seen: RunState, faults: Sequence[Result]) -> Lanes | None:
    """The lanes of a run's picture; None if the job was never ready."""
    ready = ready_at(seen)
    if ready is None:
        return None
    end = max([*(entry.time for entry in seen.entries), *(event.time for event in seen.events)])

    def lane(task: str) -> Lane:
        ran, silent = _ran(seen, task, end), _silent(seen, task, end)
        return Lane(task, _shifted(ran, ready), _shifted(silent, ready))

    shown = tuple(fault for fault in faults if fault.injected_at is not None)
    return Lanes(tuple(map(lane, seen.tasks)), _trained(seen, ready), shown, end - ready)


def _shifted(spans: Sequence[Span], zero: float) -> tuple[Span, ...]:
    return tuple((begin - zero, end - zero) for begin, end in spans)


def _ran(seen: RunState, task: str, end: float) -> list[Span]:
    """The spans in which the task's container ran."""
    return [(began, ended) for began, ended, _ in ran(seen.lives_of(task), end)]


def _silent(seen: RunState, task: str, end: float) -> list[Span]:
    """The spans from the report of the task's silence until a heartbeat or a restart."""
    changes = [(e.time, isinstance(e.event, Silent)) for e in seen.entries
            if isinstance(e.event, Silent | Heard) and e.event.of == task]  # fmt: skip
    started = [(start, False) for start in seen.starts(task)]
    return _spans(sorted([*changes, *started]), end)


def _spans(changes: Sequence[tuple[float, bool]], end: float) -> list[Span]:
    spans: list[Span] = []
    began: float | None = None
    for moment, begins in changes:
        if begins and began is None:
            began = moment
        elif not begins and began is not None:
            spans.append((began, moment))
            began = None
    return spans if began is None else [*spans, (began, end)]


def _trained(seen: RunState, ready: float) -> tuple[tuple[tuple[float, int], ...], ...]:
    """The leader's reports, split at each restart of its program or return to an earlier step."""
    starts, lines = starts_of(seen), list[list[tuple[float, int]]]()
    earlier, last = 0, 0
    for moment, step in steps(seen):
        attempt = sum(start <= moment for start in starts)
        if not lines or attempt != earlier or step < last:
            lines.append([])
        lines[-1].append((moment - ready, step))
        earlier, last = attempt, step
    return tuple(map(tuple, lines))


COLUMNS = ("fault", "moment", "injected", "detected after", "going on", "lost", "restarts")
NOTHING = "-"


@dataclass(frozen=True)
class Drill:
    """The result of a drill. `misses` are sentences: each names an expectation that failed."""

    scenario: str
    seed: int
    results: tuple[Result, ...]
    misses: tuple[str, ...]
    outcome: Outcome
    lanes: Lanes | None = None
    goodput: replayed.Goodput | None = None
    """That of a replayed trace."""

    @property
    def passed(self) -> bool:
        return not self.misses

    def facts(self) -> dict[str, Any]:
        """The content of drill.json."""
        return {
            "format": FORMAT,
            "cluster": self.outcome.cluster,
            "scenario": self.scenario,
            "seed": self.seed,
            "passed": self.passed,
            "misses": list(self.misses),
            "faults": [_facts(result) for result in self.results],
            "goodput": self.goodput.facts() if self.goodput else None,
            "success": self.outcome.success,
            "reason": self.outcome.reason,
            "blame": self.outcome.blame,
            "metrics": self.outcome.metrics,
            "run": self.outcome.run,
        }


def _facts(result: Result) -> dict[str, Any]:
    fault = result.fault
    return {
        "number": fault.number,
        "kind": fault.kind,
        "task": fault.task,
        "at": fault.at.model_dump(exclude_unset=True),
        "for": fault.lasts,
        "from": list(fault.sources) or None,
        "injected_at_s": result.injected_at,
        "injected_unix_s": _moment(result.time),
        "over_unix_s": _moment(result.over),
        "step": result.step,
        "detected_after_s": result.detected_after,
        "detected_by": result.detected_by or None,
        "going_on_after_s": result.going_on_after,
        "steps_lost": result.steps_lost,
        "steps_at_risk": result.steps_at_risk,
        "restarts": result.restarts,
        "not_injected": result.why_not or None,
    }


def _moment(time: float | None) -> float | None:
    return None if time is None else round(time, 3)


def table(results: Sequence[Result]) -> Table:
    """The table of results, one row for each fault."""
    rendered = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in COLUMNS:
        is_text = heading in ("fault", "moment", "detected after")
        rendered.add_column(heading, justify="left" if is_text else "right", no_wrap=True)
    for result in results:
        rendered.add_row(*_row(result))
    return rendered


def _row(result: Result) -> list[str]:
    fault = result.fault
    lasts = f", {fault.lasts:g} s" if fault.lasts else ""
    by = f" ({result.detected_by})" if result.detected_by else ""
    return [
        f"{fault.number} {fault.kind} {fault.task}",
        f"{fault.at}{lasts}",
        "never" if result.why_not else seconds(result.injected_at),
        f"{seconds(result.detected_after)}{by}",
        seconds(result.going_on_after),
        NOTHING if result.steps_lost is None else str(result.steps_lost),
        str(result.restarts),
    ]


def seconds(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.1f} s"


def misses(expect: Expect, results: Sequence[Result], outcome: Outcome) -> list[str]:
    """A sentence for each expectation that failed; [] if all were met."""
    return [
        *_of_the_end(expect, outcome),
        *(f"{r.fault} was not injected: {r.why_not}" for r in results if r.why_not),
        *(miss for r in results if not r.why_not for miss in _of_a_fault(expect, r)),
        *_of_metrics(expect.metrics, outcome.metrics),
    ]


def _of_the_end(expect: Expect, outcome: Outcome) -> Iterator[str]:
    if outcome.success != expect.succeeds:
        if outcome.success:
            yield "the run should fail; it succeeded"
        else:
            blame = f", blame {outcome.blame}" if outcome.blame else ""
            first_line = outcome.message.partition("\n")[0]
            yield f"the run should succeed; it failed ({outcome.reason}{blame}): {first_line}"
    if expect.reason is not None and outcome.reason != expect.reason:
        yield f"the run should end with reason {expect.reason}; it ended with {outcome.reason}"


def _of_a_fault(expect: Expect, result: Result) -> Iterator[str]:
    took, limit = result.going_on_after, expect.recovers_within
    if limit is not None and took is None:
        yield f"{result.fault}: the training should continue within {limit:g} s; it never did"
    if limit is not None and took is not None and took > limit:
        yield f"{result.fault}: the training should continue within {limit:g} s; it took {took:g} s"
    lost, most = result.steps_lost, expect.loses_at_most
    if most is not None and lost is not None and lost > most:
        yield f"{result.fault}: at most {most} steps should be lost, not {lost}"


def _of_metrics(bounds: Mapping[str, Bounds], metrics: Mapping[str, Any]) -> Iterator[str]:
    for name, bound in bounds.items():
        value = metrics.get(name)
        if not isinstance(value, int | float) or isinstance(value, bool):
            yield f"{name} should be {_words(bound)}; it was not reported"
        elif bound.min is not None and not value >= bound.min:
            yield f"{name} should be at least {bound.min:g}; it is {value:g}"
        elif bound.max is not None and not value <= bound.max:
            yield f"{name} should be at most {bound.max:g}; it is {value:g}"


def _words(bound: Bounds) -> str:
    words = {"at least": bound.min, "at most": bound.max}
    return " and ".join(f"{w} {limit:g}" for w, limit in words.items() if limit is not None)


RUNS, SILENT_STYLE, STEPS = "#7fb8a4", "#c2782d", "#3b6ea8"
FAULT, DARK, PALE, GRID = "#c2452d", "#22303c", "#8794a0", "#e6eaed"
THICK = 0.42


def draw(lanes: Lanes, title: str, file: Path) -> bool:
    """Write the figure to `file`; returns False if matplotlib is not installed."""
    try:
        from matplotlib import rcParams
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        return False
    rcParams.update({"font.family": "DejaVu Sans", "font.size": 10, "text.color": DARK})
    figure = Figure(figsize=(12, 3.6 + 0.5 * len(lanes.lanes)), layout="constrained")
    heights = {"height_ratios": [3, max(2, 0.55 * len(lanes.lanes))]}
    above, below = figure.subplots(2, 1, sharex=True, gridspec_kw=heights)
    _steps(above, lanes)
    _tasks(below, lanes)
    for panel in (above, below):
        _plain(panel)
        panel.set_xlim(min([0.0, *(fault.injected_at or 0.0 for fault in lanes.faults)]), lanes.end)
    figure.suptitle(title, x=0.01, ha="left", fontsize=13, fontweight="bold")
    figure.savefig(file, dpi=130, facecolor="white")
    return True


def _steps(panel: Any, lanes: Lanes) -> None:
    """Draw steps over time, and each fault as a line with its number."""
    for attempt in lanes.trained:
        moments, numbers = zip(*attempt, strict=True)
        panel.plot(moments, numbers, color=STEPS, marker="o", markersize=3, linewidth=1.6)
    for fault in lanes.faults:
        panel.axvline(fault.injected_at, color=FAULT, linewidth=1, linestyle=(0, (4, 3)))
        panel.annotate(f"{fault.fault.number}", (fault.injected_at, 1.0), xytext=(3, -11),
                       xycoords=("data", "axes fraction"), textcoords="offset points",
                       color=FAULT, fontsize=9, fontweight="bold")  # fmt: skip
    panel.set_title("steps, as the leader reports them", loc="left", fontsize=11)


def _tasks(panel: Any, lanes: Lanes) -> None:
    """Draw a lane for each task: when its container ran, was silent, and had a fault."""
    rows = {lane.task: row for row, lane in enumerate(reversed(lanes.lanes))}
    for lane in lanes.lanes:
        for spans, color, thick in (
            (lane.ran, RUNS, THICK),
            (lane.silent, SILENT_STYLE, THICK / 2),
        ):
            bars = [(begin, end - begin) for begin, end in spans]
            panel.broken_barh(bars, (rows[lane.task] - thick / 2, thick), facecolors=color)
    for fault in lanes.faults:
        row, at = rows[fault.fault.task], fault.injected_at
        panel.plot([at], [row], marker="X", markersize=9, color=FAULT, linestyle="none",
                   markeredgecolor="white")  # fmt: skip
        label = f"{fault.fault.number} {fault.fault.kind}"
        panel.annotate(label, (at, row), xytext=(0, 9), textcoords="offset points", color=FAULT,
                       fontsize=9, ha="center")  # fmt: skip
        if fault.going_on_after is not None and at is not None:
            panel.annotate("", (at + fault.going_on_after, row), (at, row),
                           arrowprops={"arrowstyle": "-|>", "color": DARK})  # fmt: skip
    panel.set_yticks(list(rows.values()), list(rows))
    panel.set_ylim(-0.6, len(rows) - 0.2)
    panel.set_xlabel("seconds since every task answered", color=DARK)
    title = (
        "green: the container runs; orange: the task counts as silent; arrow: until training "
        "continues"
    )
    panel.set_title(title, loc="left", fontsize=10, color=PALE)


def _plain(panel: Any) -> None:
    panel.tick_params(length=0, colors=DARK)
    panel.grid(axis="x", color=GRID)
    panel.set_axisbelow(True)
    for side in ("top", "right", "bottom", "left"):
        panel.spines[side].set_visible(False)
