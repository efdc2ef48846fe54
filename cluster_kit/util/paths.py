"""Checks of paths that a user typed, and the locations of the kit's own files."""

from __future__ import annotations

import os
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


PACKAGE = Path(__file__).resolve().parents[1]


def clone_of(package: Path) -> Path | None:
    """The clone that this package is a part of; None if it was installed from a wheel."""
    root = package.parent
    return (
        root if (root / "images" / "trainer").is_dir() and (root / "Makefile").is_file() else None
    )


CLONE = clone_of(PACKAGE)
"""None if the kit was installed from a wheel."""
FILES = CLONE or PACKAGE / "files"
"""The folder with the three below. It may be read-only, and may belong to another user."""
TEMPLATES = FILES / "templates"
IMAGE = FILES / "images" / "trainer"
"""The directory from which the trainer image is built."""
MANIFESTS = FILES / "compose"
"""The manifests and scenarios that come with the kit."""

CALLED_BY = "CLUSTER_KIT_CALLED_BY"
"""The environment variable that the Makefile sets when it runs the kit."""
_COMMANDS = {
    "doctor": "cluster-kit doctor",
    "engine": "cluster-kit engine",
    "image": "cluster-kit image build",
    "cluster": "cluster-kit up",
}


def command(target: str) -> str:
    """The command to show a user: `make TARGET` if the Makefile runs the kit, else the kit's
    verb."""
    by_make = CLONE and os.environ.get(CALLED_BY) == "make"
    return f"make {target}" if by_make else _COMMANDS[target]


def extra(name: str, target: str) -> str:
    """The end of a sentence: the command that installs this optional part of the kit."""
    return f"`make {target}` installs it" if CLONE else f"`pip install 'cluster-kit[{name}]'` does"
