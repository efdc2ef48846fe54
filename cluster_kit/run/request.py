"""What a command line asks for, and the cluster that is meant if it names none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cluster_kit.errors import UsageError

USUAL = "quickstart"
"""The manifest and the cluster of a command that names none."""


@dataclass(frozen=True)
class Request:
    """What the user asked for: a manifest, by path or name, and its overrides."""

    manifest: str
    overrides: Mapping[str, Any]
    debug: str = ""
    """The task whose program waits for a debugger, with `:PORT` if that is given."""


def unnamed(up: Sequence[str]) -> str:
    """The cluster that is meant if none is named: the only one that is up, else quickstart.

    Raises:
        UsageError: several are up, and quickstart is not among them.
    """
    if not up or USUAL in up:
        return USUAL
    if len(up) > 1:
        raise UsageError(f"{len(up)} clusters are up", f"name one: {', '.join(up)}")
    return up[0]
