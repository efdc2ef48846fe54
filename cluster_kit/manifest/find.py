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
    path = Path(reference)
    for candidate in (path, folder / f"{reference}.toml", MANIFESTS / f"{reference}.toml"):
        if is_file(candidate):
            return candidate.resolve()
    if reference and is_directory(path):
        raise UsageError(
            f"no manifest `{reference}`: this is a directory, and a manifest is a TOML file",
            f"name a file in it, or a name in {folder}/; {proposal(path.stem, names(folder))}",
        )
    raise UsageError(
        f"no manifest `{reference}`: neither a file nor a name in {folder}/",
        proposal(path.stem, names(folder)),
    )


def names(folder: Path) -> list[str]:
    """The names of the manifests in `folder` and of those that come with the kit, sorted."""
    return sorted({*own_names(folder), *own_names(MANIFESTS)})


def own_names(folder: Path) -> list[str]:
    """The names of the manifests in `folder`, sorted."""
    return sorted(path.stem for path in folder.glob("*.toml"))
