"""Where the built-in programs put what they make, below a task's output directory."""

from __future__ import annotations

from pathlib import Path


def checkpoint_directory(output: Path) -> Path:
    """The directory of all checkpoints."""
    return output / "checkpoints"
