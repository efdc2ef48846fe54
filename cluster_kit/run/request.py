"""A command line's request, and the default cluster if it names none."""

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

    `by_set` are the keys of the overrides that `--set` gave, not their own option.
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
        local: those of them whose runs lie below the current directory. If there are any, no other
            one is meant.
        changes: the cluster is to be ended or changed, so that only a local one can be meant.
    Raises:
        UsageError: several are up, and quickstart is not among them, or it is somebody else's.
    """
    if changes and not local and up:
        raise UsageError(
            f"no cluster of this directory is up, only others: {', '.join(up)}",
            f"name the one that you mean: `--name {up[0]}`",
        )
    candidates = local or up
    if not candidates or DEFAULT_MANIFEST in candidates:
        return DEFAULT_MANIFEST
    if len(candidates) > 1:
        names = ", ".join(candidates)
        raise UsageError(f"{len(candidates)} clusters are up", f"name one by `--name`: {names}")
    return candidates[0]
