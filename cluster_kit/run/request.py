"""The request of a command line, and the default cluster of a command that names none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cluster_kit.errors import UsageError
from cluster_kit.manifest.command_line import Caller

DEFAULT_MANIFEST = "quickstart"
"""The manifest and the cluster of a command that names none."""


@dataclass(frozen=True)
class Request:
    """A user's request: a manifest, by path or name, and its overrides.

    `by_set` are the keys of the overrides that come from `--set` instead of their own option.
    """

    manifest: str
    overrides: Mapping[str, Any]
    debug: str = ""
    """The task whose program waits for a debugger, with an optional `:PORT`."""
    by_set: frozenset[str] = frozenset()
    caller: Caller = Caller.SHELL


def unnamed(up: Sequence[str], local: Sequence[str], *, changes: bool = False) -> str:
    """The default cluster of a command: the only one that is up, else quickstart.

    Args:
        up: the names of all clusters that are up.
        local: the clusters whose runs are below the current directory. If there are any, only they
            are considered.
        changes: whether the command ends or changes the cluster. If so, only `local` clusters are
            considered.

    Raises:
        UsageError: several clusters are up and none is quickstart, or all belong to other
            directories.
    """
    if changes and not local and up:
        raise UsageError(
            f"no cluster of this directory is up, only those of others: {', '.join(up)}",
            "if you mean one of them, write its name: `--name NAME`",
        )
    candidates = local or up
    if not candidates or DEFAULT_MANIFEST in candidates:
        return DEFAULT_MANIFEST
    if len(candidates) > 1:
        names = ", ".join(candidates)
        of_here = " of this directory" if len(candidates) < len(up) else ""
        raise UsageError(
            f"{len(candidates)} clusters{of_here} are up", f"name one by `--name`: {names}"
        )
    return candidates[0]
