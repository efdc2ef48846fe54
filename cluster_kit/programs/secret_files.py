"""The files that a manifest's secrets and environments come from, as found on this host."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from cluster_kit.cluster import SECRETS
from cluster_kit.manifest.limits import RESERVED
from cluster_kit.manifest.schema import Manifest
from cluster_kit.parts import Mount
from cluster_kit.problem import Problem
from cluster_kit.util.paths import is_file, seen_from
from cluster_kit.util.toml_text import to_toml

MEND = "mend the path; in a manifest it is relative to the manifest's folder"
VARIABLE = re.compile(r"^[ \t]*(?:export[ \t]+)?([A-Za-z_][\w.-]*)[ \t]*[=:]", re.MULTILINE)


def find_secrets(manifest: Manifest, folder: Path) -> tuple[dict[str, Mount], list[Problem]]:
    """The secrets that come from files, by name, and the problems of those that cannot be read."""
    mounts: dict[str, Mount] = {}
    problems: list[Problem] = []
    for name, secret in manifest.secret.items():
        if secret.file:
            path = seen_from(folder, secret.file)
            mounts[name] = Mount(str(path), f"{SECRETS}/{name}")
            problems += _unreadable(f"secret.{name}", secret.file, path)
    return mounts, problems


def find_env_files(manifest: Manifest, folder: Path) -> tuple[dict[str, str], list[Problem]]:
    """The absolute path of each `env_file` as it is written, and the problems of these files."""
    paths: dict[str, str] = {}
    problems: list[Problem] = []
    for place, limits in manifest.limits_by_table():
        if limits.env_file is None:
            continue
        path = seen_from(folder, limits.env_file)
        paths[limits.env_file] = str(path)
        key = f"{place}.env_file"
        faults = _unreadable(key, limits.env_file, path) or list(_reserved(key, path))
        problems += faults
    return paths, problems


def _unreadable(place: str, name: str, path: Path) -> list[Problem]:
    value = to_toml(name)
    if not name or not is_file(path):
        return [Problem(place, value, f"no file at {path}", MEND)]
    if not os.access(path, os.R_OK):
        rule = f"you may not read {path}, and so may no container, which runs as you"
        return [Problem(place, value, rule, f"`chmod u+r {path}`, or name another file")]
    return []


def _reserved(place: str, path: Path) -> Iterator[Problem]:
    """Yields what no environment of a task can have: the values stay untold."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError):
        yield Problem(place, to_toml(path.name), "not UTF-8", "save the file as UTF-8")
        return
    for name in filter(RESERVED.fullmatch, VARIABLE.findall(text)):
        rule = f"{name} is the kit's own: it decides what the task is"
        yield Problem(place, to_toml(path.name), rule, f"take {name} out of {path}")
