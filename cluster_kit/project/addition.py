"""Files that are added to a project, and what its owner is to do with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Addition:
    """New files with their content and, by their paths, what each is; `next` are lines to tell.

    A file that is there already, as it would be written, is not among them.
    """

    files: Mapping[Path, str | bytes]
    about: Mapping[Path, str]
    next: tuple[str, ...] = ()
