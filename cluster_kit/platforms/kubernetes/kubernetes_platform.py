"""The platform Kubernetes: an Indexed Job for each role, with what they need."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cluster_kit.errors import EngineError, HostError, UsageError
from cluster_kit.facts import HostFacts
from cluster_kit.host import Host
from cluster_kit.platforms.engine import Engine
from cluster_kit.platforms.kubernetes.kubernetes_api import INSTALL, Api, client_version
from cluster_kit.platforms.kubernetes.kubernetes_engine import KubernetesEngine
from cluster_kit.platforms.kubernetes.kubernetes_pods import NOT_INSTALLED
from cluster_kit.platforms.kubernetes.kubernetes_settings import GROUP, settings_of
from cluster_kit.platforms.platform import Check, Platform, Tool
from cluster_kit.resolved import Cluster, Task
from cluster_kit.workspace import Workspace, write_atomically

if TYPE_CHECKING:
    from cluster_kit.errors import Problem
    from cluster_kit.manifest.field_types import Strict
    from cluster_kit.manifest.schema import Manifest
    from cluster_kit.plan.gpus import GpuGrant, GpuRequest


MINIMUM = (1, 33)
"""The version from which on retries by index are stable."""
CHANGED = ("create", "patch", "list", "delete")
"""The verbs for objects that may exist from the last run, and are removed at the end."""
NEEDS = (
    ("create", "batch", "jobs", ""),
    ("patch", "batch", "jobs", ""),
    ("delete", "batch", "jobs", ""),
    ("list", "batch", "jobs", ""),
    ("create", "", "pods", ""),
    ("list", "", "pods", ""),
    ("delete", "", "pods", ""),
    ("get", "", "pods", "log"),
    ("list", "", "events", ""),
    *((verb, "", "services", "") for verb in CHANGED),
    *((verb, "", "configmaps", "") for verb in CHANGED),
    *((verb, "networking.k8s.io", "networkpolicies", "") for verb in CHANGED),
)
"""(verb, group, kind, part) of the permissions that `up` needs."""


def checks_of(cluster: Cluster | None, namespace: str = "") -> list[Check]:
    """The checks of the Kubernetes cluster of the current context."""
    on = settings_of(cluster) if cluster else None
    try:
        api = KubernetesEngine(on.namespace if on else namespace).api
        return [check_version(api.get("/version"), api), *_checks_rights(api, cluster)]
    except (HostError, EngineError) as error:
        return [Check("kubernetes", "fail", error.message, error.hint)]


def check_version(said: Mapping[str, str], api: Api) -> Check:
    """Whether the API server is new enough."""
    numbers = [re.match(r"\d+", str(said.get(key, ""))) for key in ("major", "minor")]
    version = tuple(int(match[0]) for match in numbers if match)
    text = f"{said.get('gitVersion', 'of an unknown version')} at {api.host}, {api.namespace}"
    if version < MINIMUM:
        return Check("kubernetes", "fail", text, "needs 1.33 or newer: upgrade it")
    return Check("kubernetes", "ok", text)


def _checks_rights(api: Api, cluster: Cluster | None) -> Iterator[Check]:
    lacks = [_named(*need) for need in _needs(cluster) if not api.may(*need)]
    if lacks:
        hint = f"ask for a Role in the namespace {api.namespace} that allows it"
        yield Check("rights", "fail", f"you may not {', '.join(lacks)}", hint)
    else:
        yield Check("rights", "ok", "all that `up` needs")
    on = settings_of(cluster) if cluster else None
    if on is not None and on.jobset and not api.knows(GROUP):
        yield Check("jobset", "fail", *NOT_INSTALLED)
    elif on is not None and on.jobset:
        yield Check("jobset", "ok", GROUP)
    if on is not None and not on.claim:
        problem = "an emptyDir goes with its pod: nothing could be read of how the job ended"
        hint = 'write `output = "pvc"` under [kubernetes], or `kubectl apply` what `render` writes'
        yield Check("output", "fail", problem, hint)


def _needs(cluster: Cluster | None) -> Iterator[tuple[str, str, str, str]]:
    yield from NEEDS
    on = settings_of(cluster) if cluster else None
    if on is not None and on.jobset:
        for verb in CHANGED:
            yield verb, GROUP.partition("/")[0], "jobsets", ""
    if on is not None and on.storage is not None:
        yield "create", "", "persistentvolumeclaims", ""
    if cluster is not None and (cluster.from_caller or any(t.secret_files for t in cluster.tasks)):
        for verb in CHANGED:
            yield verb, "", "secrets", ""


def _named(verb: str, group: str, kind: str, part: str) -> str:
    return f"{verb} {kind}{f'/{part}' if part else ''}"


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
    takes_tasks_away = (
        "A pod with `memory` and `cpus` of its own is among the last that a node evicts"
    )
    not_portable = NOT_PORTABLE

    def table(self) -> tuple[type[Strict], str]:
        from cluster_kit.platforms.kubernetes.kubernetes_table import KubernetesTable

        return KubernetesTable, "How the job runs on Kubernetes"

    def refusals(self, manifest: Manifest) -> Iterator[Problem]:
        from cluster_kit.platforms.kubernetes.kubernetes_table import check_kubernetes

        return check_kubernetes(manifest)

    def facts(self, manifest: Manifest, facts: HostFacts) -> HostFacts:
        from cluster_kit.platforms.kubernetes.kubernetes_table import of_pods

        return of_pods(manifest, facts)

    def grants(
        self, manifest: Manifest, request: GpuRequest, facts: HostFacts
    ) -> tuple[dict[str, GpuGrant], list[Problem]]:
        from cluster_kit.plan.gpus import assign

        return assign(manifest.name, request, facts)

    def tasks(self, manifest: Manifest, tasks: tuple[Task, ...]) -> tuple[Task, ...]:
        from cluster_kit.platforms.kubernetes.kubernetes_table import of_indexed_jobs

        return of_indexed_jobs(manifest, tasks)

    def image_name(self, manifest: Manifest, image: str) -> str:
        from cluster_kit.platforms.kubernetes.kubernetes_table import image_name

        return image_name(manifest, image)

    def local_name(self, manifest: Manifest, image: str) -> str:
        from cluster_kit.platforms.kubernetes.kubernetes_table import local_name

        return local_name(manifest, image)

    def settings(self, manifest: Manifest) -> Mapping[str, Any]:
        from cluster_kit.platforms.kubernetes.kubernetes_table import settings_from

        return settings_from(manifest)

    def engine(self, settings: Mapping[str, Any] | None = None) -> Engine:
        return KubernetesEngine(str((settings or {}).get("namespace", "")))

    def checks(self, host: Host, cluster: Cluster | None) -> list[Check]:

        return checks_of(cluster)

    def place(self, cluster: Cluster) -> str:
        return self.title

    @property
    def engine_title(self) -> str:
        return self.title

    def after_build(self, cluster: Cluster, local: str, file: str) -> str:
        named = f"`docker tag {local} {cluster.image}` and " if local != cluster.image else ""
        return f"{named}`docker push {cluster.image}`"

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
        from cluster_kit.platforms.variables import refuse_in_text

        if any(task.debug for task in cluster.tasks):
            raise NO_DEBUGGER
        others = files.apart(cluster)
        contents = files.carried(cluster, lambda mount: files.read(mount, others))
        sources = {mount.target: mount.source for mount in cluster.all_mounts}
        files.refuse_secrets(contents, sources, cluster)
        return refuse_in_text(render(cluster, contents), self.file_name, cluster)

    def left_out(self, cluster: Cluster) -> list[str]:
        from cluster_kit.platforms.kubernetes import carried_files as files

        others = files.apart(cluster)
        mounts = files.host_mounts(cluster)
        return [path for mount in mounts for path in files.left_out(mount, others)]

    def write(self, workspace: Workspace, cluster: Cluster, text: str) -> Path:
        """Write the file with mode 0600, since it contains the program."""
        file = self.file(workspace, cluster.name)
        write_atomically(file, text, 0o600)
        return file

    def up(self, host: Host, cluster: Cluster, file: Path, output: Path, run: str) -> Sequence[str]:
        """Create all objects of the file, and wait until every pod has started."""
        import yaml  # installed with the Kubernetes client, which is optional

        from cluster_kit.platforms.kubernetes.kubernetes_start import for_run, make, wait_for_start

        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast as Python's
        documents = [one for one in yaml.load_all(file.read_text(encoding="utf-8"), loader) if one]
        engine = KubernetesEngine(documents[0]["metadata"].get("namespace", ""))
        try:
            objects = for_run(documents, run, output, os.environ)
        except OSError as error:
            raise HostError(
                f"the secret {error.filename} cannot be read: {error.strerror}", "fix its path"
            ) from error
        make(engine.api, objects)
        wait_for_start(engine, file.parent.name, run)
        return ()
