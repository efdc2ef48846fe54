"""What became of a cell, and what of it is not as it should be: by values alone. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster_kit.drill.matrix_cells import Cell
from cluster_kit.drill.measure import Result
from cluster_kit.drill.result import Drill
from cluster_kit.run.verdict import Reason

DETECTED_WITHIN_S = 12.0
GOING_ON_WITHIN_S = 6.0
"""After the detection; after the end of a fault that is over before it is detected."""
WENT_ON, ENDED, WRONG, NOT_REACHED = "went on", "ended", "wrong", "not reached"
HARMLESS = ("slow",)
"""A task that is slow is not lost: nothing has to be detected."""
SOON_OVER_S = 10.0
"""`deadline.silent`: what is over by then need not be detected."""


@dataclass(frozen=True)
class Judged:
    """A cell after its run. `misses` are sentences; `verdict` is one of the four above."""

    cell: Cell
    verdict: str
    misses: tuple[str, ...]
    result: Result | None = None
    drill: Drill | None = None
    left: tuple[str, ...] = ()

    def facts(self) -> dict[str, Any]:
        """What is kept of it as JSON."""
        found, outcome = self.result, self.drill.outcome if self.drill else None
        return {
            "system": self.cell.system.name,
            "role": self.cell.role,
            "fault": str(self.cell.fault),
            "task": found.fault.task if found else None,
            "verdict": self.verdict,
            "misses": list(self.misses),
            "detected_after_s": found.detected_after if found else None,
            "detected_by": found.detected_by or None if found else None,
            "going_on_after_s": found.going_on_after if found else None,
            "steps_lost": found.steps_lost if found else None,
            "steps_at_risk": found.steps_at_risk if found else None,
            "restarts": found.restarts if found else None,
            "reason": outcome.reason if outcome else None,
            "exit_code": outcome.exit_code if outcome else None,
            "blame": outcome.blame if outcome else None,
            "message": outcome.message if outcome else None,
            "left_behind": list(self.left),
            "run": Path(outcome.run).name if outcome else None,
        }


def judged(cells: Sequence[Cell], done: Drill, left: Sequence[str]) -> list[Judged]:
    """The cells whose faults were injected, and not just before the end of the job; a run that
    failed did so by the last of them.

    Args:
        left: the containers and networks that were still there after the run.
    """
    pairs = zip(cells, done.results, strict=True)
    hit = [(cell, one) for cell, one in pairs if not (one.why_not or one.at_end)]
    last = max((result.injected_at or 0.0 for _, result in hit), default=0.0)
    return [
        _judged(cell, result, done, left, last=(result.injected_at or 0.0) == last)
        for cell, result in hit
    ]


def not_reached(cell: Cell, done: Drill) -> Judged:
    """A cell whose run ended before any fault, or just after it."""
    why = f"{done.results[0].why_not or 'the job ended just after'}; {_end(done)}"
    return Judged(cell, NOT_REACHED, (why,), None, done)


def _judged(cell: Cell, result: Result, done: Drill, left: Sequence[str], *, last: bool) -> Judged:
    outcome = done.outcome
    ended = last and not outcome.success
    remains = tuple(left)
    misses = [f"left behind: {', '.join(remains)}"] if remains else []
    if cell.ends_job:
        right = ended and outcome.reason == Reason.STOPPED
        misses += [] if right else [f"the job should end as stopped; {_end(done)}"]
        return Judged(cell, ENDED if right else WRONG, tuple(misses), result, done, remains)
    if ended:
        misses.append(_end(done))
    elif result.going_on_after is None:
        misses.append("the training never went on")
    verdict = WRONG if ended or result.going_on_after is None else WENT_ON
    return Judged(cell, verdict, (*misses, *_of_figures(cell, result)), result, done, remains)


def _of_figures(cell: Cell, result: Result) -> Iterator[str]:
    """What misses the aim, one sentence each."""
    lasts, detected, went_on = cell.fault.lasts, result.detected_after, result.going_on_after
    has_to = cell.fault.kind not in HARMLESS and (lasts is None or lasts > SOON_OVER_S)
    if detected is None and has_to:
        yield "never detected"
    if detected is not None and detected > DETECTED_WITHIN_S:
        yield f"detected after {detected:.1f} s"
    since = detected if detected is not None else lasts or 0.0
    if went_on is not None and went_on - since > GOING_ON_WITHIN_S:
        what = "its detection" if detected is not None else "its end"
        yield f"going on {went_on - since:.1f} s after {what}"
    lost, most = result.steps_lost, result.steps_at_risk
    if lost is not None and most is not None and lost > most:
        yield f"{lost} steps lost, {most} since the last checkpoint"


def _end(done: Drill) -> str:
    """How the run ended, in its own words."""
    outcome = done.outcome
    if outcome.success:
        return "the run succeeded"
    blame = f", blame {outcome.blame}" if outcome.blame else ""
    return f"the run ended ({outcome.reason}{blame}): {outcome.message.partition(chr(10))[0]}"
