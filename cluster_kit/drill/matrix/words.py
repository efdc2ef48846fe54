"""A result of the matrix in a line. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cluster_kit.drill.report import NOTHING, seconds


def line(facts: Mapping[str, Any]) -> str:
    """What was broken, what became of it, its figures, and what is not as it should be."""
    by = f" ({facts['detected_by']})" if facts["detected_by"] else ""
    lost = NOTHING if facts["steps_lost"] is None else facts["steps_lost"]
    figures = (
        f"detected {seconds(facts['detected_after_s'])}{by},"
        f" going on {seconds(facts['going_on_after_s'])}, lost {lost}"
    )
    said = f"{facts['system']} {facts['role']} {facts['fault']}: {facts['verdict']}; {figures}"
    return f"{said}; MISS: {'; '.join(facts['misses'])}" if facts["misses"] else said
