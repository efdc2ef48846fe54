"""Reports which task holds which variable, by the variables' devices; the leader does it once."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from trainer.agent.progress_file import Progress

MOST = 200
"""The maximum number of variables in the report; the rest is summed up per task."""
REST = "others"
ON = re.compile(r"/job:(\w+).*?/task:(\d+)")


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
    for part in parts:
        on = ON.search(part.device or "")
        if on is None:
            continue
        size = part.dtype.size * (part.shape.num_elements() or 0)
        key = part.name.partition(":")[0], f"{on[1]}-{on[2]}"
        sizes[key] = sizes.get(key, 0) + size
    ranked = sorted(sizes.items(), key=lambda pair: (-pair[1], pair[0]))
    named, rest = ranked[:MOST], ranked[MOST:]
    left: dict[tuple[str, str], int] = {}
    for (_, on), size in rest:
        left[REST, on] = left.get((REST, on), 0) + size
    shown = [*named, *sorted(left.items())]
    return [{"name": name, "on": on, "bytes": size} for (name, on), size in shown]
