"""The data step of a manifest: its program, and the directory that has what it fetched."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

from cluster_kit.manifest.data import DataTable
from cluster_kit.manifest.limits import RESERVED
from cluster_kit.parts import Fetch
from cluster_kit.problem import Problem
from cluster_kit.programs import syntax
from cluster_kit.util.paths import is_file, is_zip, seen_from
from cluster_kit.util.toml_text import to_toml

MEND = "mend the path; in a manifest it is relative to the manifest's folder"


def find_fetch(table: DataTable, folder: Path, fetched: Path) -> tuple[Fetch, list[Problem]]:
    """The data step of a manifest in `folder`, and its problems.

    The directory of its data depends on what the program is and on its arguments, on nothing else.

    Args:
        fetched: the folder in which such directories are.
    """
    script = seen_from(folder, table.fetch)
    problems = []
    if not table.fetch or not is_file(script):
        rule = f"no file at {script}"
        problems.append(Problem("data.fetch", to_toml(table.fetch), rule, MEND))
    elif not is_zip(script) and (fault := syntax.fault(script)):
        rule = f"not valid Python: {fault.message}"
        problems.append(Problem(fault.place, fault.line, rule, "mend the line, or the one before"))
    for name in table.secrets:
        if RESERVED.fullmatch(name) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            rule = "not a name of a variable of yours"
            problems.append(Problem("data.secrets", to_toml(name), rule, "take it out"))
    stem = re.sub(r"[^A-Za-z0-9_-]", "-", script.stem) or "data"
    directory = fetched / f"{stem}-{_hash(script, table.args)}"
    step = Fetch(str(script), tuple(table.args), tuple(sorted(set(table.secrets))), str(directory))
    return step, problems


def _hash(script: Path, arguments: list[str]) -> str:
    """12 hex digits; of a program that cannot be read, which is a problem, those of none."""
    try:
        content = script.read_bytes()
    except (OSError, ValueError):
        content = b""
    text = json.dumps([hashlib.sha256(content).hexdigest(), arguments])
    return hashlib.sha256(text.encode()).hexdigest()[:12]
