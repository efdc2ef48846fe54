"""Checks whether a Kubernetes cluster can run a job. Pure but for what it asks the API server."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from cluster_kit.errors import EngineError, HostError
from cluster_kit.platforms.kubernetes.kubernetes_api import Api
from cluster_kit.platforms.kubernetes.kubernetes_engine import KubernetesEngine
from cluster_kit.platforms.kubernetes.kubernetes_listing import NOT_INSTALLED
from cluster_kit.platforms.kubernetes.kubernetes_names import GROUP
from cluster_kit.platforms.kubernetes.kubernetes_table import settings_of
from cluster_kit.platforms.platform import Check
from cluster_kit.resolved import Cluster

MINIMUM = (1, 33)
"""From then on retries by index are stable."""
CHANGED = ("create", "patch", "list", "delete")
"""What is done with objects that may be there from the last run, and are removed at the end."""
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
"""(verb, group, kind, part) of what `up` does."""


def check_kubernetes(cluster: Cluster | None, namespace: str = "") -> list[Check]:
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
        found = "an emptyDir goes with its pod: nothing could be read of how the job ended"
        hint = 'write `output = "pvc"` under [kubernetes], or `kubectl apply` what `render` writes'
        yield Check("output", "fail", found, hint)


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
