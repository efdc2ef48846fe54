"""Reports which task holds which variable, by the variables' devices; the leader does it once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from trainer.agent.injected.placement import ranked, sized
from trainer.agent.progress_file import Progress


def tell(progress: Progress | None, variables: Iterable[Any]) -> None:
    """Write the event `placement`: name, task and bytes of each variable, the largest first."""
    if progress and (parts := placement(variables)):
        progress.write("placement", variables=parts)


def placement(variables: Iterable[Any]) -> list[dict[str, object]]:
    """`{"name": "dense/kernel", "on": "ps-1", "bytes": 4096}` of each; [] if none is on a task.

    A variable that is divided counts by its parts.
    """
    parts = [part for one in variables for part in getattr(one, "variables", None) or [one]]
    sizes: dict[tuple[str, str], int] = {}
    for found in filter(None, map(sized, parts)):
        key, size = found
        sizes[key] = sizes.get(key, 0) + size
    return ranked(sizes)
