"""Questions to a path that a person typed: it may be invalid, or not to be reached."""

from __future__ import annotations

from pathlib import Path


def is_file(path: Path) -> bool:
    """Whether there is a file; False as well if the path is invalid or cannot be reached."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def is_directory(path: Path) -> bool:
    """Whether there is a directory; False as well if the path is invalid or cannot be reached."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False
