"""Reports which task holds which variable, by the variables' devices; the leader calls it once."""

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
    """Returns `{"name": "dense/kernel", "on": "ps-1", "bytes": 4096}` for each variable on a task.

    The parts of a divided variable are counted separately.
    """
    parts = [part for v in variables for part in getattr(v, "variables", None) or [v]]
    sizes: dict[tuple[str, str], int] = {}
    for entry in filter(None, map(sized, parts)):
        key, size = entry
        sizes[key] = sizes.get(key, 0) + size
    return ranked(sizes)
