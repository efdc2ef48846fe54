"""How fast a training goes."""

from __future__ import annotations


def per_second(begin: tuple[int, float], end: tuple[int, float]) -> float:
    """Steps per second between two (global step, seconds); 0.0 if no time has passed."""
    seconds = end[1] - begin[1]
    return round((end[0] - begin[0]) / seconds, 2) if seconds > 0 else 0.0
