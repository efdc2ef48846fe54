"""The platform Docker Compose: one compose file per cluster, and `docker compose up`."""

from __future__ import annotations

from pathlib import Path

from cluster_kit.host import Host
from cluster_kit.platforms.compose import compose_command
from cluster_kit.platforms.compose.compose_command import find_override
from cluster_kit.platforms.compose.compose_file import is_current, render, write_hidden
from cluster_kit.platforms.platform import Build, Tool
from cluster_kit.platforms.rendered_file import changed
from cluster_kit.platforms.secret_values import mode_of, refuse_in_text
from cluster_kit.resolved import Cluster
from cluster_kit.workspace import Workspace, write_atomically

FILE = "compose.yaml"
IGNORE_RESULTS = "# Results are not committed; this file keeps their directory.\n*\n!.gitignore\n"


class Compose:
    """See `platform.Platform`, whose methods these are."""

    def file(self, workspace: Workspace, name: str) -> Path:
        return workspace.generated(name)

    def tool(self, host: Host) -> Tool:
        return Tool(
            name="compose",
            title="Docker Compose",
            version=compose_command.version(host),
            minimum=compose_command.MINIMUM,
            absent="Compose v2 was not found",
            install="install its plugin",
        )

    def render(self, cluster: Cluster) -> str:
        return refuse_in_text(render(cluster), FILE, cluster, options=False)

    def render_portable(self, cluster: Cluster, build: Build | None) -> str:
        return refuse_in_text(render(cluster, build), FILE, cluster)

    def left_out(self, cluster: Cluster) -> list[str]:
        return []

    def write_portable(self, workspace: Workspace, cluster: Cluster, text: str) -> Path:
        """Write the compose file, and an output directory that Git keeps though it is empty.

        Docker would make a missing directory as root, and results would be root's.
        """
        file = workspace.portable(cluster.name)
        write_atomically(file, text)
        write_atomically(file.parent / "output" / ".gitignore", IGNORE_RESULTS)
        return file

    def changed(self, old: str, new: str) -> tuple[str, ...]:
        return changed(old, new)

    def stale_beside(self, file: Path, cluster: Cluster) -> str:
        return "" if is_current(file.parent, cluster) else "the value of a secret has changed"

    def write(self, workspace: Workspace, cluster: Cluster, text: str) -> Path:
        """Write the compose file and make the output directory of a plain `docker compose up`.

        Docker would make a missing directory as root.
        """
        file = workspace.generated(cluster.name)
        write_hidden(file.parent, cluster)
        write_atomically(file, text, mode_of(cluster))
        (file.parent / "output").mkdir(exist_ok=True)
        return file

    def merges(self, file: Path) -> Path | None:
        return find_override(file)

    def up(self, host: Host, file: Path, output: Path, run: str) -> None:
        compose_command.up(host, file, output, run)
