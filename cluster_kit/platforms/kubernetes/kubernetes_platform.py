"""The platform Kubernetes: an Indexed Job for each role, with what they need."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cluster_kit.errors import HostError, UsageError
from cluster_kit.facts import HostFacts
from cluster_kit.host import Host
from cluster_kit.platforms.engine import Engine
from cluster_kit.platforms.kubernetes.kubernetes_api import INSTALL, client_version
from cluster_kit.platforms.kubernetes.kubernetes_engine import KubernetesEngine
from cluster_kit.platforms.platform import Check, Platform, Tool
from cluster_kit.resolved import Cluster, Task
from cluster_kit.workspace import Workspace, write_atomically

if TYPE_CHECKING:
    from cluster_kit.errors import Problem
    from cluster_kit.manifest.field_types import Strict
    from cluster_kit.manifest.schema import Manifest
    from cluster_kit.plan.gpus import GpuGrant, GpuRequest

FILE = "kubernetes.yaml"
NO_DEBUGGER = UsageError(
    "--debug needs a published port, and a pod publishes none on this host",
    "debug the program on this host: `--engine compose`",
)
NOT_PORTABLE = UsageError(
    "--portable is for Docker Compose: kubernetes.yaml depends on no host as it is",
    "leave --portable out",
)


class Kubernetes(Platform):
    """See `Platform`, whose methods these are."""

    name = "kubernetes"
    title = "Kubernetes"
    meaning = '`"kubernetes"`'
    by_docker = False
    pulls_images = True
    output_is_late = True
    takes_tasks_away = True
    not_portable = NOT_PORTABLE

    def table(self) -> tuple[type[Strict], str]:
        from cluster_kit.platforms.kubernetes.kubernetes_table import KubernetesTable

        return KubernetesTable, "How the job runs on Kubernetes"

    def refusals(self, manifest: Manifest) -> Iterator[Problem]:
        from cluster_kit.platforms.kubernetes.kubernetes_rules import check_kubernetes

        return check_kubernetes(manifest)

    def facts(self, manifest: Manifest, facts: HostFacts) -> HostFacts:
        from cluster_kit.platforms.kubernetes.kubernetes_rules import of_pods

        return of_pods(manifest, facts)

    def grants(
        self, manifest: Manifest, request: GpuRequest, facts: HostFacts
    ) -> tuple[dict[str, GpuGrant], list[Problem]]:
        from cluster_kit.plan.gpus import assign

        return assign(manifest.name, request, facts)

    def tasks(self, manifest: Manifest, tasks: tuple[Task, ...]) -> tuple[Task, ...]:
        from cluster_kit.platforms.kubernetes.kubernetes_rules import of_indexed_jobs

        return of_indexed_jobs(manifest, tasks)

    def image_name(self, manifest: Manifest, image: str) -> str:
        from cluster_kit.platforms.kubernetes.kubernetes_rules import image_name

        return image_name(manifest, image)

    def local_name(self, manifest: Manifest, image: str) -> str:
        from cluster_kit.platforms.kubernetes.kubernetes_rules import local_name

        return local_name(manifest, image)

    def settings(self, manifest: Manifest) -> Mapping[str, Any]:
        from cluster_kit.platforms.kubernetes.kubernetes_table import settings_from

        return settings_from(manifest)

    def engine(self, settings: Mapping[str, Any] | None = None) -> Engine:
        return KubernetesEngine(str((settings or {}).get("namespace", "")))

    def checks(self, host: Host, cluster: Cluster | None) -> list[Check]:
        from cluster_kit.platforms.kubernetes.kubernetes_checks import check_kubernetes

        return check_kubernetes(cluster)

    def place(self, cluster: Cluster) -> str:
        return self.title

    @property
    def engine_title(self) -> str:
        return self.title

    def after_build(self, cluster: Cluster, local: str, file: str) -> str:
        named = f"`docker tag {local} {cluster.image}` and " if local != cluster.image else ""
        return f"{named}`docker push {cluster.image}`"

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
        from cluster_kit.platforms.kubernetes import carried_files as files
        from cluster_kit.platforms.kubernetes.kubernetes_file import render
        from cluster_kit.platforms.secret_values import refuse_in_text

        if any(task.debug for task in cluster.tasks):
            raise NO_DEBUGGER
        others = files.apart(cluster)
        found = files.carried(cluster, lambda mount: files.read(mount, others))
        sources = {mount.target: mount.source for mount in cluster.all_mounts}
        files.refuse_secrets(found, sources, cluster)
        return refuse_in_text(render(cluster, found), FILE, cluster)

    def left_out(self, cluster: Cluster) -> list[str]:
        from cluster_kit.platforms.kubernetes import carried_files as files

        others = files.apart(cluster)
        mounts = files.host_mounts(cluster)
        return [path for mount in mounts for path in files.left_out(mount, others)]

    def write(self, workspace: Workspace, cluster: Cluster, text: str) -> Path:
        """Write the file, which has the program: it is for nobody else."""
        file = self.file(workspace, cluster.name)
        write_atomically(file, text, 0o600)
        return file

    def up(self, host: Host, file: Path, output: Path, run: str) -> None:
        """Make all that the file has, and wait until every pod has started."""
        import yaml  # comes with the client of Kubernetes, an extra

        from cluster_kit.platforms.kubernetes.kubernetes_start import for_run, make, wait_for_start

        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast as Python's
        found = [one for one in yaml.load_all(file.read_text(encoding="utf-8"), loader) if one]
        engine = KubernetesEngine(found[0]["metadata"].get("namespace", ""))
        try:
            objects = for_run(found, run, output, os.environ)
        except OSError as error:
            raise HostError(
                f"the secret {error.filename} cannot be read: {error.strerror}", "fix its path"
            ) from error
        make(engine.api, objects)
        wait_for_start(engine, file.parent.name, run)
