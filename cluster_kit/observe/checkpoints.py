"""The checkpoints of a run: those that are complete and still there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cluster_kit.util.untrusted import files

INDEX = ".index"
"""TensorFlow writes this file of a checkpoint last."""
OF_MODEL = "variables.index"
"""The same of a SavedModel, which nobody goes on from."""


def complete(output: Path, below: str = "") -> Iterator[tuple[float, str]]:
    """Yields (Unix seconds of its completion, name) of each checkpoint of a run's output.

    Args:
        below: a directory in the output to which the search is limited.
    """
    for found in files(output, below, matches=_is_index):
        yield found.changed, found.name.rpartition("/")[2].removesuffix(INDEX)


def _is_index(name: str) -> bool:
    return name.endswith(INDEX) and name != OF_MODEL
