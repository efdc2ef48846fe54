"""Durations in words."""

from __future__ import annotations

import pytest

from cluster_kit.util.terminal import duration


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0, "0.0 s"),
        (16.54, "16.5 s"),
        (99.94, "99.9 s"),
        (99.96, "1 min 40 s"),
        (125.4, "2 min 5 s"),
        (3599.6, "1 h 0 min"),
        (7300, "2 h 1 min"),
    ],
)
def test_a_duration_is_shown_in_sensible_units(seconds: float, told: str) -> None:
    assert duration(seconds) == told


def test_whole_seconds() -> None:
    assert [duration(seconds, digits=0) for seconds in (29.7, 99.4, 99.6)] == [
        "30 s",
        "99 s",
        "1 min 40 s",
    ]
