"""A drill's result as a table for people and as facts for scripts. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from cluster_kit.drill.lanes import Lanes
from cluster_kit.drill.measure import Result
from cluster_kit.run.judging.outcome import Outcome

COLUMNS = ("fault", "moment", "injected", "detected after", "going on", "lost", "restarts")
NOTHING = "-"


@dataclass(frozen=True)
class Drill:
    """A drill that was run. `misses` are sentences: what was expected and is not so."""

    scenario: str
    seed: int
    results: tuple[Result, ...]
    misses: tuple[str, ...]
    outcome: Outcome
    lanes: Lanes | None = None

    @property
    def passed(self) -> bool:
        return not self.misses

    def facts(self) -> dict[str, Any]:
        """The content of drill.json."""
        return {
            "cluster": self.outcome.cluster,
            "scenario": self.scenario,
            "seed": self.seed,
            "passed": self.passed,
            "misses": list(self.misses),
            "faults": [_facts(result) for result in self.results],
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
    """One row for each fault."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in COLUMNS:
        left = heading in ("fault", "moment", "detected after")
        made.add_column(heading, justify="left" if left else "right", no_wrap=True)
    for result in results:
        made.add_row(*_row(result))
    return made


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
