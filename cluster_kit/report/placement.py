"""Which task holds which variable, as the leader has told it last. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cluster_kit.observe.figures import number
from cluster_kit.observe.progress import Entry


def placement_of(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """`{"name": …, "on": "ps-1", "bytes": …}` of each variable; [] if nobody has told."""
    told = [entry.fields.get("variables") for entry in entries if entry.event == "placement"]
    if not told or not isinstance(told[-1], list):
        return []
    found = [
        {"name": str(one.get("name")), "on": str(one.get("on")), "bytes": number(one.get("bytes"))}
        for one in told[-1]
        if isinstance(one, dict)
    ]
    return [one for one in found if one["bytes"] is not None]
