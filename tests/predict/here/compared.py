"""What was measured on emulated machines, beside the prediction and its rivals. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cluster_kit.predict import rivals
from cluster_kit.predict.answer import Point, predict
from cluster_kit.predict.measure import Figures, Used, profile_of
from cluster_kit.predict.plan import Change, changed
from cluster_kit.predict.profile import Profile, parse, text
from cluster_kit.predict.question import Question
from tests.make import ROOT

CALIBRATING = 3
"""Runs from which each way and model is predicted; without all of them its cells are left out."""
RESULTS = ROOT / "docs" / "predict-here.json"


@dataclass(frozen=True)
class Cell:
    """One run: its way, model and machines; `mbit` is the bandwidth of each of them."""

    way: str
    model: str
    workers: int
    ps: int
    mbit: int
    straggler: float | None = None
    calibrates: bool = False
    speed: float = 1.0
    """How many times as much CPU each worker has as in the runs that calibrate."""

    @property
    def name(self) -> str:
        slower = f"-straggler-{self.straggler:g}" if self.straggler else ""
        slower += f"-speed-{self.speed:g}" if self.speed != 1 else ""
        counts = f"{self.workers}+{self.ps}" if self.ps else str(self.workers)
        return f"{self.way}-{self.model}-{counts}-{self.mbit}mbit{slower}"

    @property
    def change(self) -> Change:
        """How its machines differ from those of the profile."""
        return Change(bandwidth=self.mbit * 1e6, straggler=self.straggler, speed=self.speed)

    def predicted(self, profile: Profile) -> Point:
        """What `predict` says of it."""
        [point] = predict(profile, Question((self.workers,), (self.ps or 1,), self.change)).points
        return point

    def step_s(self, profile: Profile) -> float:
        """The predicted seconds of a worker's step."""
        return profile.batch * self.workers / (self.predicted(profile).images_per_s or 1.0)


def figures_from(facts: Mapping[str, Any]) -> Figures:
    """The figures of a run, from JSON."""
    used = {task: Used(**one) for task, one in facts["used"].items()}
    tuples = ("trainers", "variables")
    return Figures(**{**facts, **{key: tuple(facts[key]) for key in tuples}, "used": used})


def median_run(runs: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The run with the median speed; of an even number, the slower one of the middle."""
    return sorted(runs, key=lambda run: figures_from(run["figures"]).images_per_s)[
        (len(runs) - 1) // 2
    ]


def compared(results: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The content of docs/predict-here.json: for each way and model its profile and its rows."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for facts in results.values():
        cell = facts["cell"]
        groups.setdefault(f"{cell['way']}, {cell['model']}", []).append(facts)
    return {name: dict(_group(rows)) for name, rows in groups.items() if _calibrated(rows)}


def _calibrated(rows: list[Mapping[str, Any]]) -> bool:
    return sum(bool(row["cell"]["calibrates"]) for row in rows) == CALIBRATING


def _group(results: list[Mapping[str, Any]]) -> Iterator[tuple[str, Any]]:
    calibrating = [row for row in results if row["cell"]["calibrates"]]
    profile = profile_of([figures_from(median_run(row["runs"])["figures"]) for row in calibrating])
    yield "profile", text(profile)
    yield "calibrated", [_measured(row, "images_per_s") for row in calibrating]
    yield "rows", [_row(row, profile) for row in results if not row["cell"]["calibrates"]]


def _measured(facts: Mapping[str, Any], speed: str) -> dict[str, Any]:
    """What was measured of a cell; `runs` has the speed of each run if there are several."""
    cell, run = facts["cell"], median_run(facts["runs"])
    keys = ("workers", "ps", "mbit", "straggler")
    speeds = [round(figures_from(one["figures"]).images_per_s, 1) for one in facts["runs"]]
    return {
        **{key: cell[key] for key in keys},
        **({"speed": cell["speed"]} if cell.get("speed", 1.0) != 1 else {}),
        "when": run["when"],
        "load": run["load"],
        **({"runs": speeds} if len(speeds) > 1 else {}),
        speed: round(figures_from(run["figures"]).images_per_s, 1),
    }


def _row(facts: Mapping[str, Any], profile: Profile) -> dict[str, Any]:
    measured = figures_from(median_run(facts["runs"])["figures"]).images_per_s
    return {**_measured(facts, "measured"),
            **predictions(Cell(**facts["cell"]), profile, measured)}  # fmt: skip


def predictions(cell: Cell, profile: Profile, measured: float) -> dict[str, Any]:
    """What model and rivals predict for a cell, and their errors.

    The rivals know nothing of faster workers: their calibrating rows are as many times faster.
    """
    point = cell.predicted(profile)
    assert point.images_per_s and point.low and point.high and point.limit
    on = changed(profile, cell.change)
    rows = [
        row.model_copy(update={"images_per_s": row.images_per_s * cell.speed})
        for row in on.measured
    ]
    on = on.model_copy(update={"measured": tuple(rows)})
    return {
        "predicted": round(point.images_per_s, 1),
        "low": round(point.low, 1),
        "high": round(point.high, 1),
        "error": round(point.images_per_s / measured - 1, 4),
        "line": round(rivals.line(on, cell.workers) / measured - 1, 4),
        "formula": round(rivals.formula(on, cell.workers, cell.ps or None) / measured - 1, 4),
        "limit": point.limit.text,
    }


def profile_from(saved: str) -> Profile:
    """The profile that docs/predict-here.json has."""
    import tomllib

    return parse(tomllib.loads(saved), "docs/predict-here.json")
