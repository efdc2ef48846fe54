"""Whole runs with an engine in memory: how they end, what is saved, and that nothing is left."""

from __future__ import annotations

from tests.fakes.stage import Stage


def test_a_run_that_goes_well(stage: Stage) -> None:
    outcome = stage.up()
    assert (outcome.success, outcome.reason, outcome.blame) == (True, "finished", None)
    assert stage.is_clean()
    print(stage.view.states, stage.view.differences[:3], stage.view.phases, outcome)
    assert not stage.view.differences
