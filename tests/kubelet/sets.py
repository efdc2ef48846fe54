"""The Jobs of a JobSet, as its controller creates and deletes them.

github.com/kubernetes-sigs/jobset: pkg/controllers/jobset_controller.go (constructJob,
labelAndAnnotateObject), success_policy.go, failure_policy.go; pkg/webhooks/jobset_webhook.go.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping
from typing import Any

Object = dict[str, Any]
PREFIX = "jobset.sigs.k8s.io"


def jobs_of(jobset: Object) -> list[Object]:
    """Returns the Jobs of a JobSet that was just created."""
    replicated = jobset["spec"]["replicatedJobs"]
    every = sum(one.get("replicas", 1) for one in replicated)
    made: list[Object] = []
    for one in replicated:
        for number in range(one.get("replicas", 1)):
            marks = _marks(jobset, one, number, len(made), every)
            made.append(_job(jobset, one, number, marks))
    return made


def _marks(jobset: Object, one: Object, number: int, of_all: int, every: int) -> dict[str, str]:
    """Returns both labels and annotations, of the Job and of its pods."""
    meta = jobset["metadata"]
    job = f"{meta.get('namespace', 'default')}/{meta['name']}-{one['name']}-{number}"
    return {
        f"{PREFIX}/jobset-name": meta["name"],
        f"{PREFIX}/replicatedjob-name": one["name"],
        f"{PREFIX}/restart-attempt": "0",
        f"{PREFIX}/replicatedjob-replicas": str(one.get("replicas", 1)),
        f"{PREFIX}/global-replicas": str(every),
        f"{PREFIX}/job-index": str(number),
        f"{PREFIX}/job-global-index": str(of_all),
        f"{PREFIX}/job-key": hashlib.sha1(job.encode(), usedforsecurity=False).hexdigest(),
    }


def _job(jobset: Object, one: Object, number: int, marks: Mapping[str, str]) -> Object:
    template = copy.deepcopy(one["template"])
    spec, meta = template["spec"], template.get("metadata", {})
    for where in (meta, spec["template"].setdefault("metadata", {})):
        for key in ("labels", "annotations"):
            where[key] = {**where.get(key, {}), **marks}
    network = jobset["spec"].get("network", {})
    if network.get("enableDNSHostnames", True):
        pod = spec["template"]["spec"]
        pod["subdomain"] = network.get("subdomain") or jobset["metadata"]["name"]
    spec["suspend"] = jobset["spec"].get("suspend", False)
    name = f"{jobset['metadata']['name']}-{one['name']}-{number}"
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": meta | {"name": name},
        "spec": spec,
    }


def end_of(jobset: Object, ended: Mapping[str, str]) -> str:
    """Returns how a JobSet has ended by now: "Completed", "Failed", or "" if it has not.

    Args:
        ended: "Complete" or "Failed" by the names of Jobs that have ended.
    """
    spec, name = jobset["spec"], jobset["metadata"]["name"]
    if "Failed" in ended.values():
        assert spec["failurePolicy"]["maxRestarts"] == 0, "what restarts a set is not done here"
        return "Failed"
    policy = spec.get("successPolicy", {"operator": "All"})
    targets = [
        f"{name}-{one['name']}-{number}"
        for one in spec["replicatedJobs"]
        for number in range(one.get("replicas", 1))
        if one["name"] in (policy.get("targetReplicatedJobs") or [one["name"]])
    ]
    needed = 1 if policy["operator"] == "Any" else len(targets)
    return "Completed" if sum(target in ended for target in targets) >= needed else ""


def refused(jobset: Object) -> str:
    """Returns why the JobSet's webhook refuses it; "" if it does not."""
    name, names = jobset["metadata"]["name"], []
    for one in jobset["spec"]["replicatedJobs"]:
        names.append(one["name"])
        last = one["template"]["spec"]["completions"] - 1
        longest = f"{name}-{one['name']}-{one.get('replicas', 1) - 1}-{last}-abcde"
        if len(longest) > 63:
            return "JobSet name is too long, pod names generated for this JobSet will exceed 63"
    for target in jobset["spec"]["successPolicy"].get("targetReplicatedJobs", ()):
        if target not in names:
            return f"invalid replicatedJob name '{target}' does not appear in .spec.ReplicatedJobs"
    return ""
