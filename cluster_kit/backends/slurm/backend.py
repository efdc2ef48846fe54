"""Slurm as a backend: it writes the script that a user submits, and submits nothing itself."""

from __future__ import annotations

from pathlib import Path

from cluster_kit.backends.interface import Tool
from cluster_kit.backends.known_secrets import refuse_in_text
from cluster_kit.backends.own_file import OwnFile, why_stale
from cluster_kit.backends.slurm.render import cluster_text, render
from cluster_kit.cluster import Cluster
from cluster_kit.engine.choose import not_run_by_the_kit
from cluster_kit.errors import UsageError
from cluster_kit.workspace import Workspace, write_atomically

FILE, RECORD = "sbatch.sh", "sbatch.json"
NO_DEBUGGER = UsageError(
    "--debug needs a published port, and tasks of Slurm publish none on this host",
    "debug the program on this host: `--engine compose`",
)
NOT_PORTABLE = UsageError(
    "--portable is for Docker Compose: sbatch.sh is for the nodes of one Slurm cluster",
    "leave --portable out",
)


class Slurm(OwnFile):
    """See `interface.Backend`, whose methods these are."""

    _not_portable = NOT_PORTABLE

    def file(self, workspace: Workspace, name: str) -> Path:
        return workspace.generated(name, FILE)

    def tool(self) -> Tool:
        raise not_run_by_the_kit()

    def render(self, cluster: Cluster) -> str:
        if any(task.debug for task in cluster.tasks):
            raise NO_DEBUGGER
        return refuse_in_text(render(cluster), FILE, cluster)

    def stale_beside(self, file: Path, cluster: Cluster) -> str:
        return why_stale(file.parent / RECORD, cluster_text(cluster))

    def write(self, workspace: Workspace, cluster: Cluster, text: str) -> Path:
        """Write the script, and beside it what a run of it keeps for `cluster-kit report`."""
        file = self.file(workspace, cluster.name)
        write_atomically(file.parent / RECORD, cluster_text(cluster))
        write_atomically(file, text)
        return file

    def up(self, file: Path, output: Path, run: str) -> None:
        raise not_run_by_the_kit(file.parent.name)
