"""Kubernetes as a backend."""

from __future__ import annotations

from pathlib import Path

from cluster_kit.backends.header import changed
from cluster_kit.backends.interface import Build, Tool
from cluster_kit.backends.kubernetes.files import carried, read
from cluster_kit.backends.kubernetes.render import render
from cluster_kit.cluster import Cluster
from cluster_kit.engine.interface import Engine
from cluster_kit.errors import UsageError
from cluster_kit.workspace import Workspace, write_atomically

NOT_PORTABLE = UsageError(
    "--portable is for Docker Compose: kubernetes.yaml depends on no host as it is",
    "leave --portable out",
)

NOT_STARTED = UsageError(
    "the kit writes the file for Kubernetes, and does not start it",
    "run `cluster-kit render NAME --engine kubernetes`; the file's first lines say how it starts",
)


class Kubernetes:
    """See `interface.Backend`, whose methods these are."""

    def file(self, workspace: Workspace, name: str) -> Path:
        return workspace.generated(name, "kubernetes.yaml")

    def tool(self) -> Tool:
        return Tool(
            name="kubectl",
            title="Kubernetes' command line",
            version=None,
            minimum=(1, 33),
            absent="",
            install="",
        )

    def render(self, cluster: Cluster) -> str:
        return render(cluster, carried(cluster, read))

    def render_portable(self, cluster: Cluster, build: Build | None) -> str:
        raise NOT_PORTABLE

    def write_portable(self, workspace: Workspace, cluster: Cluster, text: str) -> Path:
        raise NOT_PORTABLE

    def changed(self, old: str, new: str) -> tuple[str, ...]:
        return changed(old, new)

    def stale_beside(self, file: Path, cluster: Cluster) -> str:
        return ""

    def write(self, workspace: Workspace, cluster: Cluster, text: str) -> Path:
        file = self.file(workspace, cluster.name)
        write_atomically(file, text)
        return file

    def merges(self, file: Path) -> Path | None:
        return None

    def up(self, file: Path, output: Path, run: str) -> None:
        raise NOT_STARTED


def connect() -> Engine:
    """Raises UsageError: what Kubernetes runs is watched by its own tools."""
    raise NOT_STARTED
