"""The platform Kubernetes."""

from __future__ import annotations

import os
from pathlib import Path

from cluster_kit.errors import HostError, UsageError
from cluster_kit.host import Host
from cluster_kit.platforms.kubernetes.carried_files import (
    apart,
    carried,
    host_mounts,
    left_out,
    read,
    refuse_secrets,
)
from cluster_kit.platforms.kubernetes.kubernetes_api import INSTALL, client_version
from cluster_kit.platforms.kubernetes.kubernetes_engine import KubernetesEngine
from cluster_kit.platforms.kubernetes.kubernetes_file import render
from cluster_kit.platforms.kubernetes.kubernetes_start import for_run, make, wait_for_start
from cluster_kit.platforms.platform import Tool
from cluster_kit.platforms.rendered_file import OwnFile
from cluster_kit.platforms.secret_values import refuse_in_text
from cluster_kit.resolved import Cluster
from cluster_kit.workspace import Workspace, write_atomically

FILE = "kubernetes.yaml"
NO_DEBUGGER = UsageError(
    "--debug needs a published port, and a pod publishes none on this host",
    "debug the program on this host: `--engine compose`",
)
NOT_PORTABLE = UsageError(
    "--portable is for Docker Compose: kubernetes.yaml depends on no host as it is",
    "leave --portable out",
)


class Kubernetes(OwnFile):
    """See `platform.Platform`, whose methods these are."""

    _not_portable = NOT_PORTABLE

    def file(self, workspace: Workspace, name: str) -> Path:
        return workspace.generated(name, FILE)

    def tool(self, host: Host) -> Tool:
        return Tool(
            name="kubernetes",
            title="the client of Kubernetes",
            version=client_version(),
            minimum=(37,),
            absent="the client of Kubernetes is not installed",
            install=INSTALL,
        )

    def render(self, cluster: Cluster) -> str:
        if any(task.debug for task in cluster.tasks):
            raise NO_DEBUGGER
        others = apart(cluster)
        found = carried(cluster, lambda mount: read(mount, others))
        sources = {mount.target: mount.source for mount in cluster.all_mounts}
        refuse_secrets(found, sources, cluster)
        return refuse_in_text(render(cluster, found), FILE, cluster)

    def left_out(self, cluster: Cluster) -> list[str]:
        others = apart(cluster)
        return [path for mount in host_mounts(cluster) for path in left_out(mount, others)]

    def write(self, workspace: Workspace, cluster: Cluster, text: str) -> Path:
        """Write the file, which has the program: it is for nobody else."""
        file = self.file(workspace, cluster.name)
        write_atomically(file, text, 0o600)
        return file

    def up(self, host: Host, file: Path, output: Path, run: str) -> None:
        """Make all that the file has, and wait until every pod has started."""
        import yaml  # comes with the client of Kubernetes, an extra

        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast as Python's
        found = [one for one in yaml.load_all(file.read_text(encoding="utf-8"), loader) if one]
        engine = KubernetesEngine(found[0]["metadata"].get("namespace", ""))
        try:
            objects = for_run(found, run, output, os.environ)
        except OSError as error:
            raise HostError(
                f"the secret {error.filename} cannot be read: {error.strerror}", "mend its path"
            ) from error
        make(engine.api, objects)
        wait_for_start(engine, file.parent.name, run)
