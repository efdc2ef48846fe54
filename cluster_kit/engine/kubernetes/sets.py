"""JobSets as the Jobs that they have, had, or are going to have. Pure.

Source: kubernetes-sigs/jobset. Its controller deletes the Jobs that are still active as soon as a
set has succeeded or failed, and makes any anew that somebody else deletes or resumes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from cluster_kit.engine.kubernetes.pods import (
    STOPPED_BY_KIT,
    Record,
    is_stopped_by_kit,
    notes_of,
)

GROUP = "jobset.x-k8s.io/v1alpha2"
NOT_INSTALLED = (
    f"JobSet is not installed in this Kubernetes cluster, which does not know {GROUP}",
    "install it (https://jobset.sigs.k8s.io/docs/installation), or leave `kubernetes.jobset` out",
)
"""(message, cure)."""
NOT_MADE = "JobSet has made no Job for it"
AWAITED = "awaited"
"""The key of a Job that is not there."""
IN_SET = "jobset.sigs.k8s.io/jobset-name"
"""The label of all Jobs and pods of a set, with its name."""


def with_sets(jobs: Sequence[Record], sets: Iterable[Record]) -> list[Record]:
    """Returns the Jobs, and those that their sets are to have or have had. Where a set is over, or
    was stopped, its Jobs are marked as stopped: those without a pod make none any more."""
    found = {str(job["metadata"]["name"]): job for job in jobs}
    for one in sets:
        for job in _jobs(one):
            there = found.get(job["metadata"]["name"], job)
            found[job["metadata"]["name"]] = _stopped(there) if is_over(one) else there
    return list(found.values())


def is_over(jobset: Record) -> bool:
    """Whether a set has succeeded or failed, or was stopped by the kit."""
    if is_stopped_by_kit(jobset):
        return True
    conditions = jobset.get("status", {}).get("conditions") or ()
    return any(c["type"] in ("Completed", "Failed") and c["status"] == "True" for c in conditions)


def _jobs(jobset: Record) -> Iterator[dict[str, Any]]:
    own = jobset["metadata"]
    for one in jobset["spec"]["replicatedJobs"]:
        template = one["template"]
        for number in range(one.get("replicas", 1)):
            metadata = {
                "name": f"{own['name']}-{one['name']}-{number}",
                "creationTimestamp": own["creationTimestamp"],
                **{key: template["metadata"].get(key) or {} for key in ("labels", "annotations")},
            }
            yield {"metadata": metadata, "spec": template["spec"], AWAITED: True}


def _stopped(job: Record) -> Record:
    notes = {**notes_of(job), STOPPED_BY_KIT: "true"}
    return {**job, "metadata": {**job["metadata"], "annotations": notes}}
