"""What backends have in common whose file is for one place, perhaps with another one beside it."""

from __future__ import annotations

from pathlib import Path

from cluster_kit.backends.header import changed
from cluster_kit.backends.interface import Build
from cluster_kit.cluster import Cluster
from cluster_kit.errors import UsageError
from cluster_kit.workspace import Workspace


class OwnFile:
    """Methods of such a backend; `interface.Backend` describes them."""

    _not_portable: UsageError
    """Why its file runs nowhere else, and what to do instead."""

    def render_portable(self, cluster: Cluster, build: Build | None) -> str:
        raise self._not_portable

    def write_portable(self, workspace: Workspace, cluster: Cluster, text: str) -> Path:
        raise self._not_portable

    def changed(self, old: str, new: str) -> tuple[str, ...]:
        return changed(old, new)

    def stale_beside(self, file: Path, cluster: Cluster) -> str:
        return ""

    def left_out(self, cluster: Cluster) -> list[str]:
        return []

    def merges(self, file: Path) -> Path | None:
        return None


def why_stale(file: Path, wanted: str) -> str:
    """What is wrong with a file that lies beside a cluster's; "" if it has the text wanted."""
    try:
        found = file.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return f"{file.name} beside it is missing"
    return "" if found == wanted else f"{file.name} beside it was edited"
