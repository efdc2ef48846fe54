"""The table of names that an argument's template may ask for."""

from __future__ import annotations

from cluster_kit.plan.tasks import NAMES
from docs.blocks.table import table


def names() -> str:
    return table(("name", "what it stands for"), [(f"`{n}`", text) for n, text in NAMES.items()])
