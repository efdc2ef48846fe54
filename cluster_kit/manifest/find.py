"""Finds a manifest by its path or name."""

from __future__ import annotations

from pathlib import Path

from cluster_kit.errors import UsageError
from cluster_kit.util.nearest import proposal
from cluster_kit.util.own_files import MANIFESTS
from cluster_kit.util.paths import is_directory, is_file


def find(reference: str, folder: Path) -> Path:
    """The manifest file with this path, or with this name in `folder`, or one of the kit's own.

    Raises:
        UsageError: it was not found; the cure lists the names that exist.
    """
    if file := first(reference, folder, MANIFESTS):
        return file
    path, known = Path(reference), names(folder, MANIFESTS)
    if reference and is_directory(path):
        raise UsageError(
            f"no manifest `{reference}`: this is a directory, and a manifest is a TOML file",
            f"name a file in it, or a name in {folder}/; {proposal(path.stem, known)}",
        )
    raise UsageError(
        f"no manifest `{reference}`: no file, no name in {folder}/, and none of the kit's own",
        proposal(path.stem, known),
    )


def first(reference: str, *folders: Path) -> Path | None:
    """The file with this path, else the first with this name in the folders; None without one."""
    named = (folder / f"{reference}.toml" for folder in folders)
    return next((file.resolve() for file in (Path(reference), *named) if is_file(file)), None)


def names(*folders: Path) -> list[str]:
    """The names of the TOML files in these folders, sorted, each once."""
    return sorted({path.stem for folder in folders for path in folder.glob("*.toml")})
