"""The result of a training: result.json, and the metrics of the job."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from trainer.agent import atomic
from trainer.agent.progress_file import Progress

NAME = "result.json"


def write_result(
    output: Path,
    metrics: Mapping[str, object],
    classes: Sequence[str] | Mapping[int, str],
    progress: Progress | None,
) -> None:
    """Write result.json, and the event `metrics`.

    Args:
        classes: the names of the classes, in order or by number.
    """
    text = json.dumps({**metrics, "classes": classes}, indent=2) + "\n"
    atomic.replace(output / NAME, text)
    if progress:
        progress.write("metrics", **metrics)


def report_again(output: Path, progress: Progress | None) -> bool:
    """Write the metrics of an earlier, finished run again; returns False if there is none."""
    file = output / NAME
    if not file.exists():
        return False
    metrics = json.loads(file.read_text())
    metrics.pop("classes")
    if progress:
        progress.write("metrics", **metrics)
    return True


def per_second(begin: tuple[int, float], end: tuple[int, float]) -> float:
    """Returns the steps per second between two (global step, seconds); 0.0 if they are equal."""
    seconds = end[1] - begin[1]
    return round((end[0] - begin[0]) / seconds, 2) if seconds > 0 else 0.0
