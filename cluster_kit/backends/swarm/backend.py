"""The backend Docker Swarm: one stack file per cluster, and `docker stack deploy`."""

from __future__ import annotations

from pathlib import Path

from cluster_kit.backends.interface import Tool
from cluster_kit.backends.known_secrets import refuse_in_text
from cluster_kit.backends.own_file import OwnFile, why_stale
from cluster_kit.backends.shared_file import FILE, spec_text
from cluster_kit.backends.swarm import cli
from cluster_kit.backends.swarm.render import render
from cluster_kit.backends.swarm.start import wait_for_start
from cluster_kit.cluster import Cluster
from cluster_kit.engine.swarm.client import SwarmEngine
from cluster_kit.errors import UsageError
from cluster_kit.labels import project_of
from cluster_kit.workspace import Workspace, write_atomically

STACK = "stack.yaml"
NOT_PORTABLE = UsageError(
    "--portable is for Docker Compose: a stack file runs on the nodes of one swarm",
    "leave --portable out, or render it with `--engine compose`",
)


class Swarm(OwnFile):
    """See `interface.Backend`, whose methods these are."""

    _not_portable = NOT_PORTABLE

    def file(self, workspace: Workspace, name: str) -> Path:
        return workspace.generated(name, STACK)

    def tool(self) -> Tool:
        return Tool(
            name="docker",
            title="Docker's command line",
            version=cli.version(),
            minimum=cli.MINIMUM,
            absent="Docker's command line was not found",
            install="install it",
        )

    def render(self, cluster: Cluster) -> str:
        return refuse_in_text(render(cluster), STACK, cluster)

    def stale_beside(self, file: Path, cluster: Cluster) -> str:
        return why_stale(file.parent / FILE, spec_text(cluster))

    def write(self, workspace: Workspace, cluster: Cluster, text: str) -> Path:
        """Write the stack file, what all tasks are given, and the output of a plain deploy."""
        file = self.file(workspace, cluster.name)
        write_atomically(file.parent / FILE, spec_text(cluster))
        write_atomically(file, text)
        (file.parent / "output").mkdir(exist_ok=True)
        return file

    def up(self, file: Path, output: Path, run: str) -> None:
        """Deploy the stack, and wait until a node has started each of its tasks."""
        name = file.parent.name
        cli.deploy(file, project_of(name), output, run)
        wait_for_start(SwarmEngine(), name, run)
