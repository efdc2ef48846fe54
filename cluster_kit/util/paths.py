"""Questions to a path that a person typed: it may be invalid, or not to be reached."""

from __future__ import annotations

from pathlib import Path


def seen_from(folder: Path, name: str) -> Path:
    """A path that is relative to `folder`, or absolute, or below `~`; links are followed."""
    try:
        return (folder / Path(name).expanduser()).resolve()
    except (OSError, RuntimeError):  # no such user, or links that go round in a circle
        return folder / name


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
