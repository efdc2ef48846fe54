"""Pictures of a run: the meaning of each bar and point; no text of a run gets into them."""

from __future__ import annotations

from itertools import pairwise

import pytest

from cluster_kit.contract.events import Step
from cluster_kit.observe.progress import Entry
from cluster_kit.platforms.engine import Event
from cluster_kit.summary.markdown import MOST_LOSSES, MOST_TASKS, Span, curve, gantt, losses, spans
from tests.entries import as_entry
from tests.unit.summary.runs import ENTRIES, EVENTS


def test_a_container_is_drawn_from_each_start_to_its_end() -> None:
    assert spans(EVENTS, ["chief-0", "ps-0"]) == [
        Span("chief-0", 0.5, 7.0, 0),
        Span("ps-0", 0.0, 3.0, 137),
        Span("ps-0", 4.0, 7.0, None),
    ]
    assert spans(EVENTS, ["ps-0"], until=109.5)[1] == Span("ps-0", 4.0, 9.5, None)
    assert spans([]) == []
    assert spans([Event(1.0, "create", "ps-0", None), Event(2.0, "die", "ps-0", 1)]) == []


def test_a_lane_shows_how_each_life_ended() -> None:
    assert gantt(spans(EVENTS, ["chief-0", "ps-0"])).splitlines() == [
        "gantt",
        "    dateFormat x",
        "    axisFormat %s s",
        "    section chief-0",
        "    exit 0 :done, 500, 7000",
        "    section ps-0",
        "    exit 137 :crit, 0, 3000",
        "    until the end of the run :active, 4000, 7000",
    ]
    assert gantt([]) == ""
    assert "    exit 143 :done, 5, 6" in gantt([Span("ps-0", 0.005, 0.005, 143)])


def test_of_many_tasks_the_one_to_blame_is_shown() -> None:
    lives = [Span(f"worker-{index}", 0.0, 1.0, 0) for index in range(100)]
    drawn = gantt(lives, "worker-99")
    assert drawn.count("section") == MOST_TASKS
    assert "section worker-99\n" in drawn


def test_losses_are_finite_numbers_of_the_leader() -> None:
    assert losses(ENTRIES, "chief-0") == [(10, 2.0), (30, 1.0)]
    assert losses(ENTRIES, "worker-0") == []


def test_losses_of_epochs_are_drawn_over_epochs() -> None:
    """The kit learns no step with the loss of Keras's `fit`."""
    entries = [
        as_entry("chief-0", 1.0, "epoch", {"epoch": epoch, "loss": 1 / epoch})
        for epoch in (1, 2, 4)
    ]
    assert losses(entries, "chief-0") == []
    found = losses(entries, "chief-0", "epoch")
    assert found == [(1, 1.0), (2, 0.5), (4, 0.25)]
    assert '    x-axis "epoch" 1 --> 4' in curve(found, "epoch").splitlines()


def test_a_job_that_went_back_is_drawn_from_its_new_steps() -> None:
    steps = ((10, 2.0), (20, 9.0), (30, 9.0), (20, 1.5), (30, 1.0))
    entries = [as_entry("chief-0", 1.0, "epoch", {"step": s, "loss": loss}) for s, loss in steps]
    assert losses(entries, "chief-0") == [(10, 2.0), (20, 1.5), (30, 1.0)]


def test_of_very_many_losses_only_some_are_kept() -> None:
    count = 200_000
    steps = (Step(step=step, loss=1 / (step + 1)) for step in range(count))
    found = losses((Entry("chief-0", 1.0, step) for step in steps), "chief-0")
    assert MOST_LOSSES / 4 < len(found) <= MOST_LOSSES + 1
    assert (found[0], found[-1]) == ((0, 1.0), (count - 1, 1 / count))
    distances = [after - before for (before, _), (after, _) in pairwise(found)]
    assert 0 < max(distances) < count / 2000


def test_the_points_of_a_line_are_at_equal_steps() -> None:
    assert curve([(10, 2.0), (12, 1.0), (14, -0.5)]).splitlines() == [
        "xychart-beta",
        '    x-axis "step" 10 --> 14',
        '    y-axis "loss" -0.5 --> 2',
        "    line [2, 1.5, 1, 0.25, -0.5]",
    ]


@pytest.mark.parametrize("points", [[], [(1, 2.0)]])
def test_without_two_points_there_is_no_line(points: list[tuple[int, float]]) -> None:
    assert curve(points) == ""


def test_no_number_has_an_exponent() -> None:
    drawn = curve([(1, 1e-9), (2, 3e12), (10**9, 0.0)])
    assert "e-" not in drawn and "e+" not in drawn
    assert "0 --> 2923076926000" in drawn and "[0.000000001, " in drawn
