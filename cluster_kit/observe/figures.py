"""Values in what programs wrote, which may be anything. Pure."""

from __future__ import annotations

import math
from typing import Any

from cluster_kit.util.masking import LEFT_OUT
from cluster_kit.util.terminal import harmless

HUGE = 1e30
LONGEST_TEXT, DEEPEST, MOST_ITEMS = 20_000, 6, 20_000
_BACK = str.maketrans("", "", "\b\r")


def number(value: object) -> float | None:
    """The value if it is a finite number that can be drawn, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < HUGE and math.isfinite(value) else None


def text(value: Any) -> Any:
    """A text without half characters, which JSON can have and no file can; None for all others.

    Nor does it have what would move, colour or ring a terminal, or characters that are not seen or
    reverse the order of others. It has LONGEST_TEXT characters at most, and ends with LEFT_OUT if
    it had more.
    """
    if not isinstance(value, str):
        return None
    if len(value) > LONGEST_TEXT:
        value = value[: LONGEST_TEXT - len(LEFT_OUT)] + LEFT_OUT
    if value.isascii() and value.isprintable():
        return value
    return harmless(value.encode("utf-8", "replace").decode()).translate(_BACK)


def words(value: Any) -> Any:
    """The same on one line, for what stands in a table."""
    found = text(value)
    return None if found is None else found.replace("\n", " ").replace("\t", " ")


def weight(value: Any) -> int:
    """How much memory a value of JSON takes, in units of about 64 bytes."""
    if isinstance(value, str):
        return 1 + len(value) // 32
    if isinstance(value, dict):
        return 4 + sum(weight(key) + weight(inner) for key, inner in value.items())
    if isinstance(value, list):
        return 2 + sum(map(weight, value))
    return 1


def plain(value: Any, depth: int = DEEPEST) -> Any:
    """A value of JSON with finite numbers, bounded texts and bounded depth; None for all others."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return text(value)
    if isinstance(value, int | float):
        return value if number(value) is not None else None
    if depth == 0 or value is None:
        return None
    if isinstance(value, dict):
        items = list(value.items())[:MOST_ITEMS]
        return {text(key): plain(inner, depth - 1) for key, inner in items}
    return [plain(inner, depth - 1) for inner in value[:MOST_ITEMS]]
