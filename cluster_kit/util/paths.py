"""Checks of a path that a user typed, which may be invalid or unreachable."""

from __future__ import annotations

from pathlib import Path


def seen_from(folder: Path, name: str) -> Path:
    """The absolute path of `name`: relative to `folder`, absolute, or below `~`.

    Links are followed. Never raises: a path that cannot be resolved is joined to `folder`.
    """
    try:
        return (folder / Path(name).expanduser()).resolve()
    except (OSError, RuntimeError):  # unknown user, or a loop of links
        return folder / name


def is_file(path: Path) -> bool:
    """Whether the path is a file; False if it is invalid or cannot be reached."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def is_directory(path: Path) -> bool:
    """Whether the path is a directory; False if it is invalid or cannot be reached."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def exists(path: Path) -> bool:
    """Whether there is anything at the path; False if it is invalid or cannot be reached."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def is_zip(path: Path) -> bool:
    """Whether the file begins as a zip archive does; False if it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PK\x03\x04"
    except OSError:
        return False
