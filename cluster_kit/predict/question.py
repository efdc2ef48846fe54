"""What is asked: counts of workers and ps, other machines; read from the words of options. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from cluster_kit.errors import UsageError
from cluster_kit.predict.plan import Change

MOST_COUNTS, MOST_POINTS = 64, 400
WORKERS = (1, 2, 4, 8, 16, 32, 64)
PS = (1, 2, 4, 8)
_RATE = re.compile(
    r"([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*/\s*(?:([0-9]{1,9})\s*)?(hour|day|week|month)s?"
)
_SECONDS = {"hour": 3600.0, "day": 86400.0, "week": 7 * 86400.0, "month": 30 * 86400.0}


@dataclass(frozen=True)
class Question:
    """What to predict: each count of workers with each count of ps.

    `budget` is a number of machines; None: no question. `steps` are those that each worker is
    simulated for; None: as many as are exact enough.
    """

    workers: tuple[int, ...] = WORKERS
    ps: tuple[int, ...] = PS
    change: Change = field(default_factory=Change)
    budget: int | None = None
    steps: int | None = None


def counts(text: str, option: str, most: int) -> tuple[int, ...]:
    """The numbers in `1,2,8`, `1,2,4,...,256` (the same factor) or `2,4,6,...,16` (the same step).

    Raises:
        UsageError: a word is not a number from 1 to `most`, or `...` has no rule.
    """
    found: list[int] = []
    words = [word.strip() for word in text.replace("…", "...").split(",")]
    for at, word in enumerate(words):
        if word == "...":
            end = words[at + 1] if at + 1 < len(words) else ""
            found += _between(found, _count(end, option, text, most), option, text)
        else:
            found.append(_count(word, option, text, most))
    result = tuple(dict.fromkeys(found))
    if len(result) > MOST_COUNTS:
        raise UsageError(
            f"{option} {text}: more than {MOST_COUNTS} counts, the most at once",
            "double them: 1,2,4,...,256",
        )
    return tuple(sorted(result))


def _count(word: str, option: str, text: str, most: int) -> int:
    if not re.fullmatch(r"[0-9]{1,6}", word) or not 1 <= int(word) <= most:
        raise UsageError(
            f"{option} {text}: `{word}` is not a number from 1 to {most}",
            f"give counts such as {option} 1,2,4,8 or {option} 1,2,4,...,64",
        )
    return int(word)


def _between(before: list[int], end: int, option: str, text: str) -> list[int]:
    """What `...` stands for, between the counts before it and `end`."""
    rule: Callable[[int], int] | None = None
    if len(before) >= 3 and before[-1] * before[-3] == before[-2] ** 2:
        rule = lambda one: one * before[-1] // before[-2]  # noqa: E731
    elif len(before) >= 2:
        rule = lambda one: one + before[-1] - before[-2]  # noqa: E731
    elif before:
        rule = lambda one: one + 1  # noqa: E731
    filled: list[int] = []
    if rule is not None:
        last = before[-1]
        while (one := rule(last)) < end and one > last and len(filled) <= MOST_COUNTS:
            filled.append(last := one)
        if one == end or len(filled) > MOST_COUNTS:
            return filled
    raise UsageError(
        f"{option} {text}: `...` does not lead to {end}",
        f"write the same factor or the same step: {option} 1,2,4,...,64 or {option} 2,4,...,16",
    )


def failures(text: str) -> float:
    """How often a machine fails in a second: `1/day`, `2/week`, `1/30days`; raises UsageError."""
    match = _RATE.fullmatch(text.strip().lower())
    often = (
        float(match[1]) / (int(match[2] or 1) * _SECONDS[match[3]])
        if (match and int(match[2] or 1))
        else 0.0
    )
    if not 0 < often <= 1:
        raise UsageError(
            f"--failures {text}: not a rate of one machine's failures",
            "give how often each machine fails: 1/day, 2/week, 1/month",
        )
    return often
