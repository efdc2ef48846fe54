"""Counts and rates, as they are written on the command line."""

from __future__ import annotations

import pytest

from cluster_kit.errors import UsageError
from cluster_kit.predict.question import counts, failures

GOOD = {
    "8": (8,),
    "1,2,8": (1, 2, 8),
    "8, 1, 1": (1, 8),
    "1,2,4,...,256": (1, 2, 4, 8, 16, 32, 64, 128, 256),
    "1,2,4,…,8": (1, 2, 4, 8),
    "2,4,...,10": (2, 4, 6, 8, 10),
    "3,6,12,...,48,100": (3, 6, 12, 24, 48, 100),
    "1,...,4": (1, 2, 3, 4),
    "5,6,7,...,9": (5, 6, 7, 8, 9),
}
BAD = {
    "0": "`0` is not a number from 1 to 300",
    "-1": "`-1` is not",
    "": "`` is not",
    "1,,2": "`` is not",
    "1.5": "`1.5` is not",
    "301": "`301` is not a number from 1 to 300",
    "...,8": "does not lead to 8",
    "1,2,4,...,100": "does not lead to 100",
    "1,2,4,...": "`` is not",
    "4,2,...,1": "does not lead to 1",
    "1,...,300": "more than 64 counts, the most at once",
}


def test_counts(subtests: pytest.Subtests) -> None:
    for text, expected in GOOD.items():
        with subtests.test(text=text):
            assert counts(text, "--workers", 300) == expected


def test_wrong_counts_are_told_with_what_to_write(subtests: pytest.Subtests) -> None:
    for text, words in BAD.items():
        with subtests.test(text=text):
            with pytest.raises(UsageError) as error:
                counts(text, "--workers", 300)
            assert words in error.value.message
            assert error.value.hint


def test_failures() -> None:
    assert failures("1/day") == pytest.approx(1 / 86_400)
    assert failures("2 / week") == pytest.approx(2 / 7 / 86_400)
    assert failures("1/30days") == pytest.approx(1 / 30 / 86_400)
    for text in ("1", "day", "0/day", "1/0days", "-1/day", "9999999/hour", "1/year"):
        with pytest.raises(UsageError, match="not a rate"):
            failures(text)
