"""A file of pip requirements: its lines, what the build cannot do with them, their digest."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from cluster_kit.problem import Problem
from cluster_kit.util.paths import seen_from

EXTRA = "-with-"
"""Between the name of the trainer image and the digest of what was added to it."""
FILES = re.compile(
    r"(-r|-c|-e|--requirement|--constraint|--editable)\b|--find-links[= ](?!https?:)"
)
PATHS = re.compile(r"\.{0,2}/|~|file:|[^:]*@\s*file:|(?!.*://).*\.(whl|zip|tar\.gz)\b")


def lines_of(text: str) -> list[str]:
    """The lines of a file without comments and blank ones; continued lines are joined."""
    joined = re.sub(r"\\\r?\n", " ", text)
    lines = (re.sub(r"(^|\s)#.*", "", line).strip() for line in joined.splitlines())
    return [" ".join(line.split()) for line in lines if line]


def faults(lines: list[str]) -> Iterator[str]:
    """Yields what a build that sees only this file cannot do, or that there is nothing to do."""
    for line in lines:
        if FILES.match(line):
            yield f'"{line}": the build sees this one file and none that it names'
        elif PATHS.match(line):
            yield f'"{line}": the build sees no path of this host'
    if not any(not line.startswith("-") for line in lines):
        yield "it names no package"


def read(name: str, folder: Path) -> tuple[str, list[Problem]]:
    """The lines of a file seen from `folder`, "" for none, and what is wrong with them."""
    if not name:
        return "", []
    path, value = seen_from(folder, name), f'"{name}"'
    cure = "mend the path; one in a manifest is seen from its folder"
    try:
        lines = lines_of(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        rule = f"cannot be read at {path}: {error.strerror}"
        return "", [Problem("requirements", value, rule, cure)]
    except ValueError:
        return "", [Problem("requirements", value, "not UTF-8", "save the file as UTF-8")]
    cure = "write packages as `name` or `name==version`, one a line"
    found = [Problem("requirements", value, rule, cure) for rule in faults(lines)]
    return "".join(f"{line}\n" for line in lines), found


def digest(requirements: str) -> str:
    """12 hex digits, by which the image with these requirements is known."""
    return hashlib.sha256(requirements.encode()).hexdigest()[:12]
