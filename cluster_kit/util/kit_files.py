"""Where the kit's own files are, and what its commands are called there: a clone has `make`."""

from __future__ import annotations

from pathlib import Path

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
"""The folder with the three below. It may be read-only, and of another user."""
TEMPLATES = FILES / "templates"
IMAGE = FILES / "images" / "trainer"
"""What the trainer image is built from."""
MANIFESTS = FILES / "compose"
"""The manifests and scenarios that come with the kit."""

_COMMANDS = {
    "engine": "cluster-kit engine",
    "image": "cluster-kit image build",
    "cluster": "cluster-kit up",
}


def command(target: str) -> str:
    """What to type for this target of the kit's Makefile, wherever the kit is installed."""
    return f"make {target}" if CLONE else _COMMANDS[target]


def extra(name: str, target: str) -> str:
    """A sentence's end: what installs this optional part of the kit."""
    return f"`make {target}` installs it" if CLONE else f"`pip install 'cluster-kit[{name}]'` does"
