"""The Dockerfile that a manifest names instead of an image."""

from __future__ import annotations

from pathlib import Path

from cluster_kit.parts import Dockerfile
from cluster_kit.problem import Problem
from cluster_kit.util.paths import is_directory, is_file, seen_from
from cluster_kit.util.toml_text import to_toml

USUAL = "Dockerfile"


def find_dockerfile(name: str, folder: Path) -> tuple[Dockerfile | None, list[Problem]]:
    """The Dockerfile at a path, or in the directory there; None if `name` is "", or it is nowhere.

    It is built from the directory that it is in. A relative path is relative to `folder`.
    """
    if not name:
        return None, []
    path = seen_from(folder, name)
    file = path / USUAL if is_directory(path) else path
    if is_file(file):
        return Dockerfile(name, str(file), str(file.parent)), []
    rule = f"neither a Dockerfile nor a directory that has one: {path} was not found"
    cure = "mend the path; in a manifest it is relative to the manifest's folder"
    if is_directory(path):
        rule, cure = f"there is no {USUAL} in {path}", _others(name, path)
    return None, [Problem("build", to_toml(name), rule, cure)]


def _others(name: str, folder: Path) -> str:
    """The cure for a directory without a Dockerfile: those with other names, if there are any."""
    try:
        found = sorted(path.name for path in folder.iterdir() if "dockerfile" in path.name.lower())
    except OSError:
        found = []
    found = [file for file in found if not file.endswith(".dockerignore")]
    if found:
        return f"name the file: {', '.join(to_toml(str(Path(name, file))) for file in found[:4])}"
    return "write one there, which begins with the image to build on: `FROM …`"
