"""Proposals for a name or a path that was not found."""

from __future__ import annotations

import contextlib
import difflib
import os
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path

from cluster_kit.util.paths import is_directory, is_file

_MOST_ENTRIES = 2_000
"""Entries of a directory that are compared with a name."""
MOST_NAMES = 24
LEAST_BEGUN = 3
"""So many letters of a name tell it."""


def nearest(name: str, known: Iterable[str], least: float = 0.6) -> str | None:
    """The known name that is most similar to `name`; None if no name is similar.

    Swapped letters count as a typing error: `pu` means up, not gpus. So does the beginning of one
    name only: `stat` means status, not start.

    Args:
        least: how similar other names must be, from 0 to 1, as difflib's ratio.
    """
    names = list(known)
    swapped = [one for one in names if sorted(one) == sorted(name) and one != name]
    begun = [one for one in names if len(name) >= LEAST_BEGUN and one.startswith(name)]
    whole = begun if len(begun) == 1 else []
    return next(
        iter([*swapped, *whole, *difflib.get_close_matches(name, names, n=1, cutoff=least)]), None
    )


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``did you mean `worker`? ``, or "" if no known name is similar."""
    near = nearest(name, known)
    return f"did you mean `{near}`? " if near else ""


def near_or(near: str, otherwise: str) -> str:
    """``did you mean `digits`? Or fix the path``; `otherwise` alone if `near` is ""."""
    return f"{near}Or {otherwise}" if near else otherwise


def proposal(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """The hint for a name that was not found: the most similar one, and at most MOST_NAMES others.

    Args:
        otherwise: the beginning if no name is similar, see `did_you_mean_path`.
    """
    names = list(known)
    hidden = len(names) - MOST_NAMES
    listed = [*names[:MOST_NAMES], *([f"and {hidden} more"] if hidden > 0 else [])]
    return f"{did_you_mean(name, names) or otherwise}there are: {', '.join(listed) or 'none'}"


def nearest_path(name: str, folder: Path, fits: Callable[[Path], bool] = is_file) -> str:
    """The existing path that is most similar to `name`, written like it; "" if none is similar.

    Each part that does not exist is replaced by the most similar entry of its directory. A path
    that exists above `folder` wins: it was written as seen from the project, not from the manifest.

    Args:
        folder: where a relative path starts.
        fits: whether a path is of the kind that is wanted.
    """
    written = Path(name)
    current, parts = folder, written.parts
    if parts and (written.is_absolute() or parts[0].startswith("~")):
        try:
            current, parts = Path(parts[0]).expanduser(), parts[1:]
        except RuntimeError:  # unknown user
            return ""
    elif parts and ".." not in parts and fits(folder.parent / written):
        return str(Path("..") / written)
    found: list[str] = []
    for number, part in enumerate(parts, 1):
        wanted = fits if number == len(parts) else is_directory
        near = part if wanted(current / part) else _nearest_entry(part, current, wanted)
        if near is None:
            return ""
        found.append(near)
        current /= near
    beginning = written.parts[: len(written.parts) - len(parts)]
    return "" if tuple(found) == parts else str(Path(*beginning, *found))


def _nearest_entry(name: str, folder: Path, wanted: Callable[[Path], bool]) -> str | None:
    """The most similar name of the entries."""
    entries: list[str] = []
    with contextlib.suppress(OSError, ValueError), os.scandir(folder) as listed:
        entries = sorted(one.name for one in islice(listed, _MOST_ENTRIES) if one.name[0] != ".")
    return nearest_file(name, entries, lambda entry: wanted(folder / entry))


def nearest_file(
    name: str, entries: Sequence[str], wanted: Callable[[str], bool] = bool
) -> str | None:
    """The most similar of the entries' names; of equal suffixes only what is before them counts."""
    stem, suffix = Path(name).stem, Path(name).suffix
    stems = [one.removesuffix(suffix) for one in entries if suffix and one.endswith(suffix)]
    if (near := nearest(stem, stems)) and wanted(f"{near}{suffix}"):
        return f"{near}{suffix}"
    others = [one for one in entries if not suffix or not one.endswith(suffix)]
    return nearest(name, filter(wanted, others))


def did_you_mean_path(name: str, folder: Path, fits: Callable[[Path], bool] = is_file) -> str:
    """``did you mean `ml/train.py`? ``, or "" if no existing path is similar; see
    `nearest_path`."""
    near = nearest_path(name, folder, fits)
    return f"did you mean `{near}`? " if near else ""
