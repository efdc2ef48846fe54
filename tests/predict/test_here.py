"""Runs on emulated machines: their predictions are computed again, and are within the aim."""

from __future__ import annotations

import json
from dataclasses import asdict
from statistics import median
from typing import Any

import pytest

from cluster_kit.predict.measure import Figures, Used
from tests.predict.here import __main__ as here
from tests.predict.here.compared import (
    RESULTS,
    Cell,
    figures_from,
    median_run,
    predictions,
    profile_from,
)

SAVED = json.loads(RESULTS.read_text(encoding="utf-8"))
ROWS = [row for facts in SAVED.values() for row in facts["rows"]]


@pytest.mark.parametrize("name", SAVED)
def test_the_file_has_what_the_model_says_now(name: str) -> None:
    way, _, model = name.partition(", ")
    profile = profile_from(SAVED[name]["profile"])
    assert len(profile.calibrating) == 2
    for row in SAVED[name]["rows"]:
        cell = Cell(way, model, row["workers"], row["ps"], row["mbit"], row["straggler"],
                    speed=row.get("speed", 1.0))  # fmt: skip
        now = predictions(cell, profile, row["measured"])
        assert now["predicted"] == pytest.approx(row["predicted"], rel=0.005), cell.name


def test_median_and_worst_are_better_than_both_rivals() -> None:
    errors = {key: [abs(row[key]) for row in ROWS] for key in ("error", "line", "formula")}
    assert max(errors["error"]) <= 0.25
    assert median(errors["error"]) < min(median(errors["line"]), median(errors["formula"]))
    assert max(errors["error"]) < min(max(errors["line"]), max(errors["formula"]))


def measured(images_per_s: float, when: str = "2026-11-24 12:00:00", load: float = 1.0) -> Any:
    figures = Figures(
        name="demo/1", way="ring", workers=2, ps=0, batch=1, counts_images=True,
        steps=images_per_s * 10, seconds=10.0, by_worker={"worker-0": 5.0}, spread=None,
        used={"worker-0": Used(1.0, 2.0, 3.0)}, trainers=("worker-0",), coordinator="",
        cpus={"worker": 0.1}, bandwidth=5e7, ps_bandwidth=None, variables=(),
        placement="round-robin",
    )  # fmt: skip
    run = {"when": when, "load": [0.5, load], "figures": asdict(figures)}
    return json.loads(json.dumps(run))


def test_a_run_is_read_as_it_was_kept_and_the_median_one_counts() -> None:
    runs = [measured(speed) for speed in (30.0, 10.0, 20.0)]
    assert figures_from(median_run(runs)["figures"]).images_per_s == 20.0
    assert asdict(figures_from(runs[0]["figures"])) == {
        **runs[0]["figures"], "trainers": ("worker-0",), "variables": (),
    }  # fmt: skip


def test_only_what_is_missing_is_measured_and_runs_under_load_again() -> None:
    noon, later = measured(10.0), measured(20.0, "2026-11-24 13:00:00", load=9.0)
    any_load = float("inf")
    assert here.missing([], 1, any_load, "") == 1
    assert here.missing([noon, later], 2, any_load, "") == 0
    assert here.missing([noon, later], 2, 3.0, "") == 1
    assert here.missing([noon], 1, any_load, "2026-11-24 12:30:00") == 1
    newest = measured(30.0, "2026-11-24 14:00:00")
    assert here.kept([noon, later, newest], 2, 3.0, "") == [noon, newest]
    assert here.kept([later, noon], 2, 3.0, "") == [noon, later]


def test_all_cells_of_both_models_in_turn_take_at_most_40_minutes() -> None:
    found = here.cells()
    assert len({cell.name for cell in found}) == len(found) == 56
    assert all(a.model != b.model for a, b in zip(found[::2], found[1::2], strict=True))
    seconds = sum(here.takes(one, None) for one in found)
    assert 20 * 60 < seconds < 40 * 60
    slower = next(cell for cell in found if cell.straggler)
    keys = here.overrides(slower, 10)
    assert keys["role"]["worker"]["cpus"] == 0.25
    assert keys["task"]["worker-0"]["cpus"] == 0.05


def test_results_with_fewer_cells_do_not_replace_those_of_before() -> None:
    before = {"ring, fat": {"rows": [1, 2]}, "sync-ps, fat": {"rows": [3]}}
    found = {"ring, fat": {"rows": [4]}, "sync-ps, fat": {"rows": [5]}, "ring, small": {"rows": []}}
    assert here.together(before, found) == {
        "sync-ps, fat": {"rows": [5]}, "ring, fat": {"rows": [1, 2]},
    }  # fmt: skip
