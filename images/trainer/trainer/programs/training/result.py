"""What a training has come to: `result.json`, and the same in the job's metrics."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from trainer.agent import atomic
from trainer.agent.progress_file import Progress

NAME = "result.json"


def write(
    output: Path,
    metrics: Mapping[str, object],
    classes: Sequence[str] | Mapping[int, str],
    progress: Progress | None,
) -> None:
    """`metrics` are also told as the event of that name.

    Args:
        classes: their names, in order or by number.
    """
    text = json.dumps({**metrics, "classes": classes}, indent=2) + "\n"
    atomic.replace(output / NAME, text)
    if progress:
        progress.write("metrics", **metrics)


def tell_again(output: Path, progress: Progress | None) -> bool:
    """Where an earlier run has come to its end: tell its metrics for this one; whether it has."""
    file = output / NAME
    if not file.exists():
        return False
    metrics = json.loads(file.read_text())
    metrics.pop("classes")
    if progress:
        progress.write("metrics", **metrics)
    return True
