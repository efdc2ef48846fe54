"""The Jobs of a cluster as one JobSet, which is admitted, started and ended as a whole. Pure.

Source: kubernetes-sigs/jobset, API `jobset.x-k8s.io/v1alpha2`. Its controller names each Job
`<set>-<name>-<number>`, gives Jobs and pods the labels and annotations of their templates, and, as
soon as the set has succeeded or failed, deletes the Jobs that are still active.
"""

from __future__ import annotations

from collections.abc import Sequence

from cluster_kit import labels
from cluster_kit.backends.kubernetes.jobs import QUEUE
from cluster_kit.backends.kubernetes.volumes import Object
from cluster_kit.cluster import Cluster
from cluster_kit.engine.kubernetes.sets import GROUP
from cluster_kit.labels import kubernetes_name


def jobset(cluster: Cluster, jobs: Sequence[Object]) -> Object:
    """Returns the JobSet with these Jobs; it succeeds with its leader, and an evaluator's last
    score."""
    on = cluster.kubernetes
    assert on is not None
    name = kubernetes_name(cluster.name)
    own = {key: jobs[0]["metadata"]["labels"][key] for key in (labels.CLUSTER, labels.PLAN)}
    decide = {cluster.leader.role, *(task.role for task in cluster.evaluators)}
    replicated = [_replicated(job) for job in jobs]
    spec: Object = {
        "network": {
            "enableDNSHostnames": True,
            "subdomain": name,
            "publishNotReadyAddresses": True,
        },
        "successPolicy": {
            "operator": "All",
            "targetReplicatedJobs": [one["name"] for one in replicated if one["name"] in decide],
        },
        "failurePolicy": {"maxRestarts": 0},
        "replicatedJobs": replicated,
    }
    if on.queue:
        own[QUEUE] = on.queue
        spec = {"suspend": True, **spec}
    metadata = {"name": name, "labels": own}
    return {"apiVersion": GROUP, "kind": "JobSet", "metadata": metadata, "spec": spec}


def _replicated(job: Object) -> Object:
    own = job["metadata"]["labels"]
    template = {"metadata": {"labels": own}, "spec": job["spec"]}
    return {"name": own[labels.ROLE], "replicas": 1, "template": template}


def templates(one: Object) -> list[Object]:
    """Returns the Jobs in an object, each with its labels and its spec: a Job, or a set's."""
    if one["kind"] == "Job":
        return [one]
    if one["kind"] == "JobSet":
        return [replicated["template"] for replicated in one["spec"]["replicatedJobs"]]
    return []
