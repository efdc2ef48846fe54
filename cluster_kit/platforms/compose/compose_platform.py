"""The platform Docker Compose: one compose file per cluster, and `docker compose up`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cluster_kit.errors import UsageError
from cluster_kit.host import Host
from cluster_kit.platforms.compose import compose_command
from cluster_kit.platforms.docker import docker_engine
from cluster_kit.platforms.engine import Engine
from cluster_kit.platforms.platform import Platform, Tool
from cluster_kit.platforms.rendered_file import Build
from cluster_kit.resolved import Cluster
from cluster_kit.workspace import Workspace, write_atomically

if TYPE_CHECKING:
    from cluster_kit.errors import Problem
    from cluster_kit.manifest.schema import Manifest

FILE = "compose.yaml"
IGNORE_RESULTS = "# Results are not committed; this file keeps their directory.\n*\n!.gitignore\n"


class Compose(Platform):
    """See `Platform`, whose methods these are."""

    name = "compose"
    title = "this host"
    meaning = '`"compose"` on this host'
    one_host = True

    @property
    def not_portable(self) -> UsageError:
        raise AssertionError("its file is portable")

    def refusals(self, manifest: Manifest) -> Iterator[Problem]:
        from cluster_kit.platforms.compose.compose_rules import check_compose

        return check_compose(manifest)

    def engine(self, settings: Mapping[str, Any] | None = None) -> Engine:
        return docker_engine.connect()

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
        from cluster_kit.platforms.compose.compose_file import render
        from cluster_kit.platforms.secret_values import refuse_in_text

        return refuse_in_text(render(cluster), FILE, cluster, options=False)

    def render_portable(self, cluster: Cluster, build: Build | None) -> str:
        from cluster_kit.platforms.compose.compose_file import render
        from cluster_kit.platforms.secret_values import refuse_in_text

        return refuse_in_text(render(cluster, build), FILE, cluster)

    def write_portable(self, workspace: Workspace, cluster: Cluster, text: str) -> Path:
        """Write the compose file, and an output directory that Git keeps though it is empty.

        Docker would make a missing directory as root, and results would be root's.
        """
        from cluster_kit.platforms.secret_values import mode_of

        file = workspace.portable(cluster.name)
        write_atomically(file, text, mode_of(cluster))
        write_atomically(file.parent / "output" / ".gitignore", IGNORE_RESULTS)
        return file

    def stale_beside(self, file: Path, cluster: Cluster) -> str:
        from cluster_kit.platforms.compose.compose_file import is_current

        return "" if is_current(file.parent, cluster) else "the value of a secret has changed"

    def write(self, workspace: Workspace, cluster: Cluster, text: str) -> Path:
        """Write the compose file and make the output directory of a plain `docker compose up`.

        Docker would make a missing directory as root.
        """
        from cluster_kit.platforms.compose.compose_file import write_hidden
        from cluster_kit.platforms.secret_values import mode_of

        file = workspace.generated(cluster.name)
        write_hidden(file.parent, cluster)
        write_atomically(file, text, mode_of(cluster))
        (file.parent / "output").mkdir(exist_ok=True)
        return file

    def merges(self, file: Path) -> Path | None:
        return compose_command.find_override(file)

    def up(self, host: Host, file: Path, output: Path, run: str) -> None:
        compose_command.up(host, file, output, run)
