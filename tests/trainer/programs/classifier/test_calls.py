"""The steps of each call that a chief sends to its workers."""

from __future__ import annotations

import itertools

import pytest

from trainer.programs.classifier.schedule import are_even, calls_of


def test_calls_become_shorter_towards_the_end():
    assert calls_of(40, 2, 40.0) == [6, 5, 4, 4, 4, 4, 4, 4, 4, 1]


@pytest.mark.parametrize(
    ("count", "steps_per_s", "exactly", "calls"),
    [
        (5, 0.0, None, [1] * 5),  # the speed is unknown
        (5, 0.5, None, [1] * 5),  # slow steps
        (25, 40.0, 10, [10, 10, 5]),
        (3, 40.0, 10, [3]),
        (0, 40.0, None, []),
    ],
)
def test_calls(count, steps_per_s, exactly, calls):
    assert calls_of(count, 2, steps_per_s, exactly) == calls


@pytest.mark.parametrize(
    ("count", "workers", "steps_per_s", "calls"),
    [
        (40, 2, 20.0, [20, 20]),
        (41, 2, 20.0, [20, 21]),
        (300, 2, 20.0, [30] * 10),
        (1, 2, 20.0, [1]),
        (5, 2, 0.1, [1] * 5),  # slow steps
        (0, 2, 20.0, []),
    ],
)
def test_equally_fast_workers_share_the_steps_out(count, workers, steps_per_s, calls):
    made = calls_of(count, workers, steps_per_s, even=True)
    assert sorted(made) == sorted(calls)


def test_no_call_takes_longer_than_half_a_second():
    calls = calls_of(1000, 2, 10.0)
    assert calls[0] == max(calls) == 5


def test_the_calls_make_exactly_the_steps_of_the_epoch():
    for count, workers, speed, exactly, even in itertools.product(
        (1, 2, 7, 40, 1259), (1, 2, 40), (0.0, 0.3, 12.0, 900.0), (None, 1, 16), (False, True)
    ):
        calls = calls_of(count, workers, speed, exactly, even=even)
        assert sum(calls) == count and min(calls) >= 1


@pytest.mark.parametrize(
    ("calls", "even"),
    [
        ([(20, 1.0), (20, 1.4), (0, 0.0)], True),
        ([(20, 1.0), (20, 1.6)], False),
        ([(10, 1.0), (8, 1.0), (2, 1.0)], True),  # the short one says little
        ([(10, 1.0)], False),
        ([(0, 0.0)] * 3, False),
        ([], False),
    ],
)
def test_workers_are_equally_fast_by_their_longer_calls(calls, even):
    assert are_even(calls) is even
