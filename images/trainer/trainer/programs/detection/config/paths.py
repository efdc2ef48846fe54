"""Paths in a pipeline configuration: relative to its directory, or with a placeholder."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

PLACEHOLDER = re.compile(r"\{\{\s*(.*?)\s*\}\}")
DIRECTORY = "."
"""Key of the configuration's own directory among the places."""


def resolved(text: str, places: Mapping[str, Path]) -> str:
    """`text` as an absolute path, its `{{ data }}` and the like replaced.

    Args:
        places: directories by placeholder, and the configuration's own under `"."`.
    Raises:
        ValueError: an unknown placeholder.
    """

    def directory(match: re.Match[str]) -> str:
        name = match[1]
        if name not in places or name == DIRECTORY:
            known = ", ".join(f"{{{{ {key} }}}}" for key in sorted(places) if key != DIRECTORY)
            raise ValueError(f"{match[0]} stands for nothing; known: {known or 'none'}")
        return str(places[name])

    path = Path(PLACEHOLDER.sub(directory, text))
    return str(places.get(DIRECTORY, Path()) / path)
