"""The sources of a manifest's own mounts, as found on this host."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from cluster_kit.manifest.mounts import PlainMount
from cluster_kit.parts import Mount
from cluster_kit.problem import Problem
from cluster_kit.util.paths import exists, seen_from
from cluster_kit.util.toml_text import to_toml


def find_mounts(
    tables: Iterable[tuple[str, PlainMount]], folder: Path
) -> tuple[tuple[Mount, ...], list[Problem]]:
    """The mounts with absolute sources, in order, and the problems of those that are not there.

    A relative path is relative to `folder`.

    Args:
        tables: each with its key in the manifest (`mount.0`).
    """
    mounts: list[Mount] = []
    problems: list[Problem] = []
    for place, table in tables:
        path = seen_from(folder, table.source)
        mounts.append(Mount(str(path), table.target, table.read_only))
        if not table.source or not exists(path):
            rule = f"neither a file nor a directory at {path}"
            cure = (
                "make it, or mend the path; in a manifest it is relative to the manifest's folder"
            )
            problems.append(Problem(f"{place}.source", to_toml(table.source), rule, cure))
    return tuple(mounts), problems
