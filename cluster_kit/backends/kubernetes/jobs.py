"""The Indexed Job of each role, as Kubernetes' own values. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from cluster_kit import labels
from cluster_kit.backends.container_spec import ContainerSpec, container_specs
from cluster_kit.backends.kubernetes.files import Carried
from cluster_kit.backends.kubernetes.indexed import INDEX, command, environment
from cluster_kit.backends.kubernetes.volumes import CONFIG, Object, volumes
from cluster_kit.backends.shared_file import FILE, without_shared
from cluster_kit.backends.variables import GROWING, SHARED
from cluster_kit.cluster import Cluster, Task
from cluster_kit.labels import kubernetes_job, kubernetes_name, kubernetes_secrets
from cluster_kit.plan.kubernetes import USER
from cluster_kit.plan.nodes import requirement
from cluster_kit.roles import ROLES

COMPLETION_INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
ENDLESS = 2**31 - 1
"""How often tasks of a JobSet are started again, but for those of the leader's role: a Job that
fails takes its whole set away, the leader with its verdict. The leader counts by itself."""
PULLING_S = 1800.0
"""What a Job's deadline has on top of the job's own: pods wait for nodes, and pull the image."""
CONTAINER = "task"
"""The name of each pod's only container."""
GPU = "nvidia.com/gpu"
QUEUE = "kueue.x-k8s.io/queue-name"
"""The label by which Kueue finds what it holds back until there is room."""


def jobs(cluster: Cluster, files: Sequence[Carried]) -> list[Object]:
    """Returns the Jobs of a cluster, in the order of the roles."""
    specs = dict(zip((task.name for task in cluster.tasks), container_specs(cluster), strict=True))
    return [
        _job(cluster, tasks, [specs[task.name] for task in tasks], files)
        for tasks in map(cluster.of, ROLES)
        if tasks
    ]


def tags(cluster: Cluster, spec: ContainerSpec, role: str = "") -> dict[str, str]:
    """Returns the labels of all that belongs to a cluster, or of a role's Job and pods."""
    own = {labels.ROLE: role, labels.LEADER: str(cluster.leader.role == role).lower()}
    shared = {labels.CLUSTER: cluster.name, labels.PLAN: spec.labels[labels.PLAN]}
    return {**shared, **own} if role else shared


def _job(
    cluster: Cluster,
    tasks: Sequence[Task],
    specs: Sequence[ContainerSpec],
    files: Sequence[Carried],
) -> Object:
    role, first, on = tasks[0].role, specs[0], cluster.kubernetes
    assert on is not None
    own = tags(cluster, first, role)
    deadlines = cluster.deadlines
    longest = deadlines.start + deadlines.job + deadlines.evaluator_grace + PULLING_S
    spec: Object = {
        "completionMode": "Indexed",
        "completions": len(tasks),
        "parallelism": len(tasks),
        "activeDeadlineSeconds": math.ceil(longest),
        "podReplacementPolicy": "Failed",
    }
    # A leader is not started again: its end decides the job. One among other workers shares theirs.
    restarts = max(spec.restarts for spec in specs)
    if on.jobset and role != cluster.leader.role:
        restarts = ENDLESS
    spec |= {"backoffLimitPerIndex": restarts} if restarts else {"backoffLimit": 0}
    if on.queue and not on.jobset:
        own, spec["suspend"] = own | {QUEUE: on.queue}, True
    spec["template"] = {
        "metadata": {"labels": tags(cluster, first, role), **_secrets_of(first)},
        "spec": _pod(cluster, tasks, specs, files),
    }
    metadata = {"name": kubernetes_job(cluster.name, role, in_set=on.jobset), "labels": own}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def _secrets_of(spec: ContainerSpec) -> Object:
    names = spec.labels[labels.SECRETS]
    return {"annotations": {labels.SECRETS: names}} if names else {}


def _pod(
    cluster: Cluster,
    tasks: Sequence[Task],
    specs: Sequence[ContainerSpec],
    files: Sequence[Carried],
) -> Object:
    task, on = tasks[0], cluster.kubernetes
    assert on is not None
    volumes_, mounts = volumes(cluster, specs[0], files)
    pod: Object = {
        "subdomain": kubernetes_name(cluster.name),
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": specs[0].shared.stop_grace_s,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "shareProcessNamespace": specs[0].shared.init,  # the pod's own init reaps then
        "securityContext": security(),
    }
    if on.pull_secret:
        pod["imagePullSecrets"] = [{"name": on.pull_secret}]
    if task.nodes:
        pod["affinity"] = _affinity(task.nodes)
    pod["containers"] = [_container(cluster, tasks, specs, mounts)]
    pod["volumes"] = volumes_
    return pod


def security() -> Object:
    """Returns the security context of a pod under the restricted profile."""
    user, _, group = USER.partition(":")
    return {
        "runAsNonRoot": True,
        "runAsUser": int(user),
        "runAsGroup": int(group),
        "fsGroup": int(group),
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def confined(spec: ContainerSpec) -> Object:
    """Returns the security context of a container under the restricted profile."""
    return {
        "allowPrivilegeEscalation": not spec.shared.no_new_privileges,
        "readOnlyRootFilesystem": spec.shared.read_only,
        "capabilities": {"drop": list(spec.shared.cap_drop)},
    }


def _container(
    cluster: Cluster, tasks: Sequence[Task], specs: Sequence[ContainerSpec], mounts: list[Object]
) -> Object:
    first, on = specs[0], cluster.kubernetes
    assert on is not None
    container: Object = {
        "name": CONTAINER,
        "image": first.shared.image,
        "imagePullPolicy": on.pull_policy,
        "args": command(specs),
        "env": _variables(cluster, tasks, specs),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": confined(first),
    }
    if resources := _resources(first):
        container["resources"] = resources
    return {**container, "volumeMounts": mounts}


def _variables(
    cluster: Cluster, tasks: Sequence[Task], specs: Sequence[ContainerSpec]
) -> list[Object]:
    """Returns the container's variables, the index before all that use it."""
    shared = {k: v for k, v in specs[0].shared.environment.items() if k not in GROWING}
    shared[SHARED] = f"{CONFIG}/{FILE}"
    tables = [
        shared | without_shared(task, {**spec.own_environment, **spec.hidden})
        for task, spec in zip(tasks, specs, strict=True)
    ]
    found: list[Object] = [
        {"name": INDEX, "valueFrom": {"fieldRef": {"fieldPath": COMPLETION_INDEX}}}
    ]
    found += [{"name": k, "value": v} for k, v in environment(specs, tables).items()]
    secret, _ = kubernetes_secrets(cluster.name)
    for name in specs[0].secrets:
        source = {"secretKeyRef": {"name": secret, "key": name}}
        found.append({"name": name, "valueFrom": source})
    return found


def _resources(spec: ContainerSpec) -> Object:
    """Returns limits, and the same as requests: a node has them for this container alone."""
    limits: dict[str, str] = {}
    if spec.cpus is not None:
        limits["cpu"] = f"{math.ceil(spec.cpus * 1000)}m"
    if spec.memory is not None:
        limits["memory"] = str(spec.memory)
    gpus = {GPU: str(len(spec.devices.ids))} if spec.devices else {}
    found: Object = {"limits": limits | gpus} if limits or gpus else {}
    return found | ({"requests": limits} if limits else {})


def _affinity(constraints: Sequence[str]) -> Object:
    expressions: list[dict[str, Any]] = []
    for label, sign, value in map(requirement, constraints):
        operator = "In" if sign == "==" else "NotIn"
        expressions.append({"key": label, "operator": operator, "values": [value]})
    terms = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
