"""A file of pip requirements: its lines, those that the build cannot install, their digest."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from cluster_kit.problem import Problem
from cluster_kit.util.paths import seen_from

EXTRA = "-with-"
"""Stands between the name of the trainer image and the digest of the added requirements."""
FILES = re.compile(
    r"(-r|-c|-e|--requirement|--constraint|--editable)\b|--find-links[= ](?!https?:)"
)
PATHS = re.compile(r"\.{0,2}/|~|file:|[^:]*@\s*file:|(?!.*://).*\.(whl|zip|tar\.gz)\b")


def lines_of(text: str) -> list[str]:
    """The lines of a requirements file without comments and blank lines; continued ones joined."""
    joined = re.sub(r"\\\r?\n", " ", text)
    lines = (re.sub(r"(^|\s)#.*", "", line).strip() for line in joined.splitlines())
    return [" ".join(line.split()) for line in lines if line]


def faults(lines: list[str]) -> Iterator[str]:
    """Yields the reasons why a build that has only this file cannot install these lines."""
    for line in lines:
        if FILES.match(line):
            yield f'"{line}": the build sees this one file and none that it names'
        elif PATHS.match(line):
            yield f'"{line}": the build sees no path of this host'
    if not any(not line.startswith("-") for line in lines):
        yield "it names no package"


def read(name: str, folder: Path) -> tuple[str, list[Problem]]:
    """The lines of a file and their problems; "" if `name` is "" or cannot be read.

    A relative path is relative to `folder`.
    """
    if not name:
        return "", []
    path, value = seen_from(folder, name), f'"{name}"'
    hint = "fix the path; in a manifest it is relative to the manifest's folder"
    try:
        lines = lines_of(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        rule = f"cannot be read at {path}: {error.strerror}"
        return "", [Problem("requirements", value, rule, hint)]
    except ValueError:
        return "", [Problem("requirements", value, "not UTF-8", "save the file as UTF-8")]
    hint = "write packages as `name` or `name==version`, one a line"
    problems = [Problem("requirements", value, rule, hint) for rule in faults(lines)]
    return "".join(f"{line}\n" for line in lines), problems


def digest(requirements: str) -> str:
    """12 hex digits that the tag of the image with these requirements ends with."""
    return hashlib.sha256(requirements.encode()).hexdigest()[:12]
