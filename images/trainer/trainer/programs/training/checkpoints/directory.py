"""Where every program keeps its checkpoints."""

from __future__ import annotations

from pathlib import Path


def checkpoint_directory(output: Path) -> Path:
    """Below the output directory."""
    return output / "checkpoints"
