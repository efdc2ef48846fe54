"""The platform Slurm: one script per cluster, which the user gives to `sbatch`."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from cluster_kit.errors import UsageError
from cluster_kit.host import Host
from cluster_kit.platforms.platform import Tool
from cluster_kit.platforms.rendered_file import OwnFile, why_stale
from cluster_kit.platforms.secret_values import refuse_in_text
from cluster_kit.platforms.slurm.sbatch_script import cluster_text, render
from cluster_kit.resolved import Cluster
from cluster_kit.workspace import Workspace, write_atomically


def not_run_by_the_kit(name: str = "NAME") -> UsageError:
    """The error of every verb that would have to start a job of Slurm, or look into one."""
    return UsageError(
        'engine = "slurm": the kit writes a script for Slurm and does not run it',
        f"`cluster-kit render {name} --engine slurm`, then `sbatch compose/{name}/sbatch.sh`; "
        "`squeue --me` shows the job, `scancel` ends it",
    )


def no_engine_of_slurm(_: str) -> NoReturn:
    raise not_run_by_the_kit()


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
    """See `platform.Platform`, whose methods these are."""

    _not_portable = NOT_PORTABLE

    def file(self, workspace: Workspace, name: str) -> Path:
        return workspace.generated(name, FILE)

    def tool(self, host: Host) -> Tool:
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

    def up(self, host: Host, file: Path, output: Path, run: str) -> None:
        raise not_run_by_the_kit(file.parent.name)
