"""What a drill has broken, on the lanes of the tasks that it met. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cluster_kit.observe.figures import number
from cluster_kit.report.lanes import Lane, Span
from cluster_kit.report.marks import Mark

BROKEN, DRILL = "broken", "drill"


@dataclass(frozen=True)
class Fault:
    """A fault of a drill. Times are Unix seconds; `over` is None if it has no end of its own.

    `for_s` is the time for which it was to last. Seconds after it are None if nobody noticed it,
    or nothing went on.
    """

    number: int
    kind: str
    task: str
    at: float
    over: float | None = None
    for_s: float | None = None
    detected_after_s: float | None = None
    detected_by: str = ""
    going_on_after_s: float | None = None
    steps_lost: int | None = None

    @property
    def title(self) -> str:
        """`fault 1: freeze for 5 s`."""
        lasts = f" for {self.for_s:g} s" if self.for_s else ""
        return f"fault {self.number}: {self.kind}{lasts}"

    @property
    def text(self) -> str:
        """The title and what became of it, a line for each."""
        by = f" ({self.detected_by})" if self.detected_by else ""
        detected, on = self.detected_after_s, self.going_on_after_s
        return "\n".join([
            f"{self.title}, by the drill",
            "not noticed" if detected is None else f"noticed after {detected:g} s{by}",
            "training did not go on" if on is None else f"training went on after {on:g} s",
            *([f"{self.steps_lost} steps lost"] if self.steps_lost else []),
        ])  # fmt: skip

    def facts(self, began: float) -> dict[str, Any]:
        """As report.json has it: times in seconds since Unix time `began`."""
        over = None if self.over is None else round(self.over - began, 3)
        more = {key: getattr(self, key) for key in _FIGURES}
        return {"number": self.number, "kind": self.kind, "task": self.task,
                "at": round(self.at - began, 3), "over": over, **more,
                "detected_by": self.detected_by or None}  # fmt: skip


_FIGURES = ("for_s", "detected_after_s", "going_on_after_s", "steps_lost")


def faults_of(drill: object, since: float) -> list[Fault]:
    """The faults in drill.json that were injected since Unix time `since`, the first one first."""
    told = drill.get("faults") if isinstance(drill, dict) else None
    found = [_fault(one) for one in told if isinstance(one, dict)] if isinstance(told, list) else []
    return sorted((one for one in found if one and one.at >= since), key=lambda one: one.at)


def _fault(told: Mapping[str, Any]) -> Fault | None:
    """None if it was never injected, or is not known when."""
    at, lost = number(told.get("injected_unix_s")), number(told.get("steps_lost"))
    if at is None:
        return None
    return Fault(
        number=int(number(told.get("number")) or 0),
        kind=str(told.get("kind")),
        task=str(told.get("task")),
        at=at,
        over=number(told.get("over_unix_s")),
        for_s=number(told.get("for")),
        detected_after_s=number(told.get("detected_after_s")),
        detected_by=str(told.get("detected_by") or ""),
        going_on_after_s=number(told.get("going_on_after_s")),
        steps_lost=None if lost is None else int(lost),
    )


def with_faults(lanes: Mapping[str, Lane], faults: Sequence[Fault], end: float) -> dict[str, Lane]:
    """The lanes with a mark where each fault came, and a span as long as it lasted.

    Args:
        end: of what was seen, Unix seconds.
    """
    met = dict(lanes)
    for fault in faults:
        if fault.task not in met:
            continue
        lane = met[fault.task]
        marks = sorted([*lane.marks, Mark(DRILL, fault.at, fault.text)], key=lambda mark: mark.at)
        over = min(fault.over or fault.at, end)
        spans = [Span(BROKEN, fault.at, over, fault.title)] if over > fault.at else []
        met[fault.task] = replace(lane, marks=tuple(marks), over=(*lane.over, *spans))
    return met
