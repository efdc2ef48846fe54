"""Steps per second before and during a profile."""

from __future__ import annotations

import json

import pytest

from trainer.agent.profiling.breakdown import points_of, steps_before_and_during, steps_per_s
from trainer.agent.progress_file import parsed


def entry(**fields):
    return parsed(json.dumps(fields).encode())


def step(at, number):
    return entry(time=at, event="step", step=number)


def test_steps_between_two_reports_count_as_even():
    points = points_of(step(at, 10 * at) for at in range(10))
    assert steps_per_s(points, 2.5, 4.5) == pytest.approx(10)


def test_before_and_during():
    reports = [step(at, 20 * at) for at in range(100, 121)]
    reports += [step(120 + at, 2400 + 15 * at) for at in range(1, 5)]
    assert steps_before_and_during(points_of(reports), 120, 2) == {"before": 20, "during": 15}


def test_rates_without_reports_are_unknown():
    assert steps_before_and_during([], 120, 2) == {"before": None, "during": None}
    reports = points_of([step(100, 1), step(101, 2)])
    assert steps_before_and_during(reports, 101.5, 2) == {"before": 1, "during": None}


def test_a_restarted_run_is_counted_from_its_start():
    reports = [step(1, 100), step(2, 110), step(9, 5), step(10, 8), entry(event="epoch", time=11)]
    assert points_of(reports) == [(9, 5), (10, 8)]


def test_lines_of_a_users_program_do_no_harm():
    odd = [step("now", 1), step(1, True)]
    assert points_of([*odd, step(1, 1)]) == [(1, 1)]
