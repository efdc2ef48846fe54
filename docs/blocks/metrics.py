"""The table of a run's metrics, from the one that they are made by."""

from __future__ import annotations

from cluster_kit.metrics.prometheus import FAMILIES, STATES, Family
from docs.blocks.table import table


def names() -> str:
    """All metrics."""
    header = ("metric", "type", "further labels", "meaning")
    return table(header, (_row(family) for family in FAMILIES.values()))


def states() -> str:
    """The values of the label `state`."""
    return ", ".join(f"`{state}`" for state in STATES)


def _row(family: Family) -> tuple[str, str, str, str]:
    labels = ", ".join(f"`{label}`" for label in family.labels)
    return f"`{family.name}`", family.kind, labels, family.help
