"""The bench's goals: met, missed, or undecided inside the spread; and its history."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from tests.bench.growth import Cell, Cost, more
from tests.bench.measured import Bar, Measured, Skipped
from tests.bench.report import print_changes, read_json, write_json
from tests.bench.throughput import batch_for


def ratios(*values: float, limit: float = 0.97) -> Measured:
    return Measured("steps", "speed", "steps/s", Bar(limit, at_least=True), values)


def test_a_goal_inside_the_interval_of_the_median_is_undecided() -> None:
    twenty = [0.90 + number / 100 for number in range(20)]
    assert ratios(*twenty).interval == (pytest.approx(0.95), pytest.approx(1.04))
    assert ratios(*twenty).verdict == "undecided"
    assert ratios(*twenty, limit=0.94).verdict == "met"
    assert ratios(*twenty, limit=1.05).verdict == "missed"
    assert ratios(0.96, 0.98, 0.99).verdict == "undecided", "of few values all count"
    assert ratios(0.96).verdict == "missed"
    assert Measured("x", "x", "s", None, (1.0,)).verdict == "met"


def test_the_history_keeps_every_run_and_the_newest_is_compared(tmp_path: Path) -> None:
    for value in (0.5, 0.8):
        write_json([ratios(value, value)], {"cpus": 2}, tmp_path)
    assert len((tmp_path / "history.jsonl").read_text().splitlines()) == 2
    before = read_json(tmp_path / "history.jsonl")
    assert before == read_json(tmp_path / "bench.json")
    console = Console(file=io.StringIO(), width=100)
    print_changes([ratios(0.6, 0.6)], {"cpus": 4}, before, console)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "-25.0%" in shown and "not the same machine" in shown and "cpus" in shown
    assert "within the spread" not in shown
    other = tmp_path / "other.json"
    other.write_text("[]")
    with pytest.raises(ValueError, match="not a file of"):
        read_json(other)


def test_the_cost_of_more_workers_is_compared_and_not_that_of_the_first() -> None:
    few, many = row = [Cell("sync", 1, 1), Cell("sync", 32, 1)]

    def cost(first_step_s: float) -> list[Cost]:
        return [Cost(first_step_s, first_step_s, step_ms=5, step_cpu_ms=1, memory_mb=1)]

    costs = {few: (cost(2), cost(20)), many: (cost(13), cost(30))}  # the kit's, the plain way's
    found = more(row, costs, "first_step_s")
    assert isinstance(found, Measured)
    assert (found.value, found.verdict) == (pytest.approx(1.1), "met")
    assert isinstance(more(row, costs, "step_ms"), Skipped), "nothing grew"


@pytest.mark.parametrize(
    ("step_ms", "timed", "batch"),
    [
        (40, {8: 10.0, 128: 70.0}, 68),
        (10, {128: 70.0, 8: 10.0}, 8),
        (100, {8: 10.0, 128: 70.0}, 188),
        (5, {8: 10.0, 128: 70.0}, 1),
        (40, {8: 10.0, 128: 10.0}, 8),
    ],
)
def test_the_batch_whose_step_takes_so_long(step_ms, timed, batch):
    assert batch_for(step_ms, timed) == batch
