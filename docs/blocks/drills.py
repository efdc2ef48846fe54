"""The kinds of faults, from the table that drills are made by."""

from __future__ import annotations

from cluster_kit.drill.scenario_file import KINDS
from docs.blocks.table import table


def kinds() -> str:
    """Each kind, and what it does."""
    rows = ((f"`{kind.name}`", kind.does) for kind in KINDS.values())
    return table(("kind", "what it does"), rows)
