"""The values of secrets that containers have as files of this host."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path, PurePosixPath

from cluster_kit.cluster import SECRETS
from cluster_kit.util.masking import looks_secret

MOST_BYTES = 64 * 1024
_VARIABLE = re.compile(
    r"""^[ \t]*(?:export[ \t]+)?([A-Za-z_][\w.-]*)[ \t]*[=:][ \t]*"""
    r"""("(?:[^"\\]|\\.)*"|'[^']*'|[^\n]*)""",
    re.MULTILINE,
)
"""A line of an `env_file`; a value between quotes may have several."""


def secret_in(source: str, target: str) -> set[str]:
    """The text of a file that is mounted at `target`; nothing if it is no secret.

    It is as much as can be read: a run that has ended is not to fail for a file that is gone.
    """
    if not source or PurePosixPath(target).parent != PurePosixPath(SECRETS):
        return set()
    with contextlib.suppress(OSError, ValueError), Path(source).open("rb") as file:
        return {file.read(MOST_BYTES).decode("utf-8", errors="replace")} - {""}
    return set()


def secret_variables(env_file: str) -> set[str]:
    """The values in an `env_file` whose names look like secrets; nothing of one that is gone."""
    found = set()
    with contextlib.suppress(OSError, ValueError), Path(env_file).open("rb") as file:
        text = file.read(MOST_BYTES).decode("utf-8-sig", errors="replace")
        for name, written in _VARIABLE.findall(text):
            value = written.strip()
            if looks_secret(name) and value[:1] in ("'", '"') and value[-1] == value[0]:
                found.add(value[1:-1])
            elif looks_secret(name):
                found |= {value, value.partition(" #")[0].rstrip()}
    return found - {""}
