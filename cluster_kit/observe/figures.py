"""Figures in what programs wrote, which may be anything. Pure."""

from __future__ import annotations

import math

HUGE = 1e30


def number(value: object) -> float | None:
    """The value if it is a finite number that can be drawn, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < HUGE and math.isfinite(value) else None
