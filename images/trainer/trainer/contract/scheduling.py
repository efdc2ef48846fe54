"""The values by which a manifest chooses how the kernel schedules a task's threads."""

from __future__ import annotations

BATCH, NORMAL = "batch", "normal"
RULE = f"must be {BATCH} or {NORMAL}"


def is_valid(value: str) -> bool:
    """Return whether CLUSTER_KIT_SCHEDULING may have this value."""
    return value in (BATCH, NORMAL)
