"""The checkpoints of a run: those that are complete and still there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

INDEX = ".index"
"""TensorFlow writes this file of a checkpoint last."""
OF_MODEL = "variables.index"
"""The same of a SavedModel, which nobody goes on from."""


def complete(output: Path) -> Iterator[tuple[float, str]]:
    """Yields (Unix seconds of its completion, name) of each checkpoint below the directory."""
    for file in output.rglob(f"*{INDEX}"):
        if file.name == OF_MODEL:
            continue
        try:
            yield file.stat().st_mtime, file.name.removesuffix(INDEX)
        except OSError:
            continue  # removed by now: programs keep only the newest ones
