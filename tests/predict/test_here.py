"""Runs on emulated machines: their predictions are computed again, and are within the aim."""

from __future__ import annotations

import json
from statistics import median

import pytest

from tests.predict.here.compared import RESULTS, Cell, predictions, profile_from

SAVED = json.loads(RESULTS.read_text(encoding="utf-8"))
ROWS = [row for facts in SAVED.values() for row in facts["rows"]]


@pytest.mark.parametrize("name", SAVED)
def test_the_file_has_what_the_model_says_now(name: str) -> None:
    way, _, model = name.partition(", ")
    profile = profile_from(SAVED[name]["profile"])
    assert len(profile.calibrating) == 2
    for row in SAVED[name]["rows"]:
        cell = Cell(way, model, row["workers"], row["ps"], row["mbit"], row["straggler"])
        now = predictions(cell, profile, row["measured"])
        assert now["predicted"] == pytest.approx(row["predicted"], rel=0.005), cell.name


def test_median_and_worst_are_better_than_both_rivals() -> None:
    errors = {key: [abs(row[key]) for row in ROWS] for key in ("error", "line", "formula")}
    assert max(errors["error"]) <= 0.25
    assert median(errors["error"]) < min(median(errors["line"]), median(errors["formula"]))
    assert max(errors["error"]) < min(max(errors["line"]), max(errors["formula"]))
