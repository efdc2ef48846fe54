"""The pods of an Indexed Job, as its controller makes them and the kubelet resolves them.

https://kubernetes.io/docs/concepts/workloads/controllers/job/#completion-mode
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.kubelet.expand import Objects, environment, expand
from tests.kubelet.sets import jobs_of

INDEX = "batch.kubernetes.io/job-completion-index"


@dataclass(frozen=True)
class Pod:
    """One pod with its only container, with all values resolved."""

    job: str
    index: int
    hostname: str
    names: tuple[str, ...]
    """The names by which other pods find it: `<host>.<service>`, and its expansions by the search
    path."""
    labels: Mapping[str, str]
    args: tuple[str, ...]
    environment: Mapping[str, str]
    spec: Mapping[str, Any]
    retries: int

    @property
    def container(self) -> Mapping[str, Any]:
        (only,) = self.spec["containers"]
        return dict(only)


def pods(objects: list[dict[str, Any]], namespace: str = "default") -> list[Pod]:
    """Returns all pods of all Jobs among these objects, and of those of their JobSets."""
    known = Objects(objects)
    jobs = [one for one in objects if one["kind"] == "Job"]
    jobs += [job for one in objects if one["kind"] == "JobSet" for job in jobs_of(one)]
    services = {one["metadata"]["name"]: one["spec"] for one in objects if one["kind"] == "Service"}
    return [
        _pod(job, index, known, services, namespace)
        for job in jobs
        for index in range(job["spec"]["completions"])
    ]


def _pod(
    job: dict[str, Any], index: int, known: Objects, services: Mapping[str, Any], namespace: str
) -> Pod:
    assert job["spec"]["completionMode"] == "Indexed"
    template = copy.deepcopy(job["spec"]["template"])
    spec, name = template["spec"], job["metadata"]["name"]
    metadata = {"name": f"{name}-{index}-abcde", "namespace": namespace, **template["metadata"]}
    metadata["annotations"] = {**metadata.get("annotations", {}), INDEX: str(index)}
    metadata["labels"] = {**metadata["labels"], INDEX: str(index)}
    (container,) = spec["containers"]
    # The controller appends its variable: earlier variables cannot use it (kubernetes#90466).
    field = {"fieldPath": f"metadata.annotations['{INDEX}']"}
    last = {"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": field}}
    container["env"] = [*container.get("env", ()), last]
    variables = environment(container, metadata, known)
    host = spec.get("hostname") or f"{name}-{index}"
    assert len(host) <= 63
    return Pod(
        job=name,
        index=index,
        hostname=host,
        names=_names(host, spec.get("subdomain", ""), metadata["labels"], services, namespace),
        labels=metadata["labels"],
        args=tuple(expand(text, variables) for text in container.get("args", ())),
        environment=variables,
        spec=spec,
        retries=job["spec"].get("backoffLimitPerIndex", 0),
    )


def _names(
    host: str, subdomain: str, labels: Mapping[str, str], services: Mapping[str, Any], space: str
) -> tuple[str, ...]:
    """Returns the names of a pod: it has some if a headless Service with the name of its subdomain
    selects it."""
    service = services.get(subdomain)
    if service is None or service.get("clusterIP") != "None":
        return ()
    if not service["selector"].items() <= labels.items():
        return ()
    short = f"{host}.{subdomain}"
    return short, f"{short}.{space}", f"{short}.{space}.svc.cluster.local"
