"""The platform Slurm: one script per cluster, which the user gives to `sbatch`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cluster_kit.errors import UsageError
from cluster_kit.host import Host
from cluster_kit.platforms.engine import Engine
from cluster_kit.platforms.platform import Platform, Tool
from cluster_kit.resolved import Cluster
from cluster_kit.workspace import Workspace, write_atomically

if TYPE_CHECKING:
    from cluster_kit.errors import Problem
    from cluster_kit.manifest.field_types import Strict
    from cluster_kit.manifest.schema import Manifest


def not_run_by_the_kit(name: str = "NAME") -> UsageError:
    """The error of every verb that would have to start or inspect a Slurm job."""
    return UsageError(
        'engine = "slurm": the kit writes a script for Slurm and does not run it',
        f"`cluster-kit render {name} --engine slurm`, then `sbatch` with the file that it names; "
        "`squeue --me` shows the job, `scancel` ends it",
    )


RECORD = "sbatch.json"
NO_DEBUGGER = UsageError(
    "--debug needs a published port, and tasks of Slurm publish none on this host",
    "debug the program on this host: `--engine compose`",
)
NOT_PORTABLE = UsageError(
    "--portable is for Docker Compose: sbatch.sh is for the nodes of one Slurm cluster",
    "leave --portable out",
)


class Slurm(Platform):
    """See `Platform`, whose methods these are."""

    name = "slurm"
    title = "Slurm"
    meaning = '`"slurm"`'
    by_docker = False
    host_network = True
    not_portable = NOT_PORTABLE

    def table(self) -> tuple[type[Strict], str]:
        from cluster_kit.platforms.slurm.slurm_table import SlurmTable

        return SlurmTable, "How the job runs on Slurm"

    def refusals(self, manifest: Manifest) -> Iterator[Problem]:
        from cluster_kit.platforms.slurm.slurm_table import check_slurm

        return check_slurm(manifest)

    def settings(self, manifest: Manifest) -> Mapping[str, Any]:
        from cluster_kit.platforms.slurm.slurm_table import settings_from

        return settings_from(manifest)

    def not_run(self, name: str) -> UsageError:
        return not_run_by_the_kit(name)

    def engine(self, settings: Mapping[str, Any] | None = None) -> Engine:
        raise not_run_by_the_kit()

    def place(self, cluster: Cluster) -> str:
        return self.title

    def needs_image(self, cluster: Cluster) -> bool:
        return bool(cluster.settings["image"])

    def after_build(self, cluster: Cluster, local: str, file: str) -> str:
        return f"make {cluster.settings['image']} of it, as the first lines of {file} say"

    def tool(self, host: Host) -> Tool:
        raise not_run_by_the_kit()

    def render(self, cluster: Cluster) -> str:
        from cluster_kit.platforms.slurm.sbatch_script import render
        from cluster_kit.platforms.variables import refuse_in_text

        if any(task.debug for task in cluster.tasks):
            raise NO_DEBUGGER
        return refuse_in_text(render(cluster), self.file_name, cluster)

    def stale_beside(self, file: Path, cluster: Cluster) -> str:
        from cluster_kit.platforms.rendered_file import why_stale
        from cluster_kit.platforms.slurm.sbatch_script import cluster_text

        return why_stale(file.parent / RECORD, cluster_text(cluster))

    def write(self, workspace: Workspace, cluster: Cluster, text: str) -> Path:
        """Write the script, and the files that its runs keep for `cluster-kit report`."""
        from cluster_kit.platforms.slurm.sbatch_script import cluster_text, mode_of_script

        file = self.file(workspace, cluster.name)
        write_atomically(file.parent / RECORD, cluster_text(cluster))
        write_atomically(file, text, mode_of_script(cluster))
        return file

    def up(self, host: Host, cluster: Cluster, file: Path, output: Path, run: str) -> Sequence[str]:
        raise not_run_by_the_kit(file.parent.name)
