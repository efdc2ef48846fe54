"""The GPUs that TensorFlow found on a task, which may be others than the engine was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cluster_kit.observe.progress import Entry


def reported(entry: Entry) -> tuple[str, dict[str, Any]] | None:
    """The task that a `devices` entry is about, and its fields of TaskView; None for any other.

    The leader writes the entries of servers, a program its own.
    """
    if entry.event != "devices":
        return None
    sees = entry.fields.get("sees")
    seen = tuple(map(str, sees)) if isinstance(sees, list) else None
    problem = str(entry.fields.get("broken", ""))
    return str(entry.fields.get("of", entry.task)), {"gpus_seen": seen, "gpu_problem": problem}


def by_task(entries: Sequence[Entry]) -> dict[str, dict[str, Any]]:
    """The newest such fields of each task that was asked."""
    return dict(found for entry in entries if (found := reported(entry)))
