"""The Jobs of a cluster: one Indexed Job for each role, alone or in a JobSet. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import PurePosixPath
from typing import Any

from cluster_kit import labels
from cluster_kit.errors import UsageError
from cluster_kit.platforms.container import Container, task_containers
from cluster_kit.platforms.kubernetes.carried_files import Carried
from cluster_kit.platforms.kubernetes.kubernetes_settings import (
    GROUP,
    kubernetes_job,
    kubernetes_name,
    kubernetes_role,
    kubernetes_secrets,
    settings_of,
)
from cluster_kit.platforms.kubernetes.kubernetes_table import USER, requirement
from cluster_kit.platforms.rendered_file import FILE, is_secret, parts_of, without_shared
from cluster_kit.platforms.variables import GROWING, SHARED, shared_variables
from cluster_kit.resolved import SECRETS, Cluster, Task
from cluster_kit.roles import ROLES

INDEX = "CK_INDEX"
"""The variable with a pod's index. Kubernetes declares its own, JOB_COMPLETION_INDEX, last of all,
where no other variable could use it (kubernetes#90466)."""
REFERENCE = f"$({INDEX})"


def escaped(text: str) -> str:
    """Returns the text escaped, so that Kubernetes expands it to the original text."""
    return text.replace("$", "$$")


def template(texts: Sequence[str]) -> str | None:
    """Returns the template that Kubernetes expands to the texts of indexes 0, 1, …; None if there
    is none."""
    parts = parts_of(texts)
    return None if parts is None else REFERENCE.join(map(escaped, parts))


def command(role: Sequence[Container]) -> list[str]:
    """Returns the arguments of all tasks of a role.

    Raises:
        UsageError: they differ in more than their index.
    """
    words = []
    for texts in zip_longest(*(spec.command for spec in role)):
        word = None if None in texts else template(texts)
        if word is None:
            raise _differ(role, "arguments", next((t for t in texts if t), ""))
        words.append(word)
    return words


def environment(role: Sequence[Container], tables: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Returns the variables of all tasks of a role, by name; `tables` has those of each task."""
    variables = {}
    for name in sorted({name for table in tables for name in table}):
        text = None
        if all(name in table for table in tables):
            text = template([table[name] for table in tables])
        if text is None:
            raise _differ(role, "variables", name)
        variables[name] = text
    return variables


def _differ(role: Sequence[Container], what: str, example: str) -> UsageError:
    first, last = role[0].hostname, role[-1].hostname
    return UsageError(
        f"{first} … {last}: their {what} differ by more than their index ({example}): "
        "Kubernetes gives all tasks of a role the same, with {{ index }} in it",
        "write the argument with {{ index }} alone, or let the program read TF_CONFIG",
    )


CONFIG = "/run/cluster-kit"
"""The mount point of the ConfigMap with the cluster's description."""
SHM = 64 * 2**20
"""The default bytes of /dev/shm, as in Docker's containers."""
Object = dict[str, Any]


def volumes(
    cluster: Cluster, spec: Container, files: Sequence[Carried]
) -> tuple[list[Object], list[Object]]:
    """Returns the volumes of a pod and the mounts of its container, in the same order."""
    name, on = kubernetes_name(cluster.name), settings_of(cluster)
    assert on is not None  # it is a cluster of this engine
    pairs: list[tuple[Object, list[Object]]] = [
        _volume("cluster", {"configMap": {"name": name}}, CONFIG, read_only=True),
        output(cluster, spec.output),
        _volume("shm", _memory(spec.shm_size or SHM), "/dev/shm"),
    ]
    for path in spec.tmpfs:
        empty = _memory() if path == SECRETS else _empty(spec.bounds.tmp)
        pairs.append(_volume(PurePosixPath(path).name, empty, path))
    mounts = spec.mounts
    targets = {mount.target for mount in mounts}
    pairs += [_files(one) for one in files if one.target in targets]
    claims = [one for one in on.claims if one[0] in targets]
    read_only = {mount.target: mount.read_only for mount in mounts}
    for number, (target, claim, folder) in enumerate(claims):
        source = {"persistentVolumeClaim": {"claimName": claim}}
        extra = {"subPath": folder} if folder else {}
        ro = read_only[target]
        pairs.append(_volume(f"claim-{number}", source, target, read_only=ro, **extra))
    secrets = [mount for mount in mounts if is_secret(mount)]
    if secrets:
        pairs.append(_secrets(f"{name}-files", [mount.target for mount in secrets]))
    return [volume for volume, _ in pairs], [
        mount for _, own_mounts in pairs for mount in own_mounts
    ]


def output(cluster: Cluster, path: str) -> tuple[Object, list[Object]]:
    """Returns the volume at the output's path, and its mount, which is a separate folder in a
    claim."""
    claim = settings_of(cluster).claim
    if not claim:
        return _volume("output", _empty(), path)
    source = {"persistentVolumeClaim": {"claimName": claim}}
    return _volume("output", source, path, subPath=cluster.name)


def _volume(
    name: str, source: Object, path: str, *, read_only: bool = False, **more: str
) -> tuple[Object, list[Object]]:
    mount = {"name": name, "mountPath": path, **more}
    return {"name": name, **source}, [mount | ({"readOnly": True} if read_only else {})]


def _empty(size: int | None = None) -> Object:
    return {"emptyDir": {} if size is None else {"sizeLimit": str(size)}}


def _memory(size: int | None = None) -> Object:
    limit = {} if size is None else {"sizeLimit": str(size)}
    return {"emptyDir": {"medium": "Memory", **limit}}


def _files(one: Carried) -> tuple[Object, list[Object]]:
    name = one.name[one.name.rindex("files-") :]
    items = [{"key": key, "path": path or "file"} for key, path in keys(one.files).items()]
    source = {"configMap": {"name": one.name, "items": items}}
    extra = {"subPath": "file"} if "" in one.files else {}
    return _volume(name, source, one.target, read_only=True, **extra)


def keys(files: Mapping[str, bytes]) -> dict[str, str]:
    """Returns the path of each file by its key: a key has no slash."""
    return {f"f{number}": path for number, path in enumerate(sorted(files))}


def _secrets(name: str, targets: Sequence[str]) -> tuple[Object, list[Object]]:
    volume = {"name": "secret-files", "secret": {"secretName": name, "defaultMode": 0o440}}
    mounts = [
        {
            "name": "secret-files",
            "mountPath": target,
            "subPath": PurePosixPath(target).name,
            "readOnly": True,
        }
        for target in sorted(targets)
    ]
    return volume, mounts


COMPLETION_INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
ENDLESS = 2**31 - 1
"""The maximum restarts of a task of a JobSet, except of the leader's role: a failed Job would end
its whole JobSet, including the leader before its verdict. The leader counts its retries itself."""
PULLING_S = 1800.0
"""The seconds by which a Job's deadline exceeds the kit's own: pods wait for nodes, and pull the
image."""
CONTAINER = "task"
"""The name of each pod's only container."""
GPU = "nvidia.com/gpu"
QUEUE = "kueue.x-k8s.io/queue-name"
"""The label of objects that Kueue suspends until the quota allows them."""


def jobs(cluster: Cluster, files: Sequence[Carried]) -> list[Object]:
    """Returns the Jobs of a cluster, in the order of the roles."""
    specs = dict(zip((task.name for task in cluster.tasks), task_containers(cluster), strict=True))
    return [
        _job(cluster, tasks, [specs[task.name] for task in tasks], files)
        for tasks in map(cluster.of, ROLES)
        if tasks
    ]


def tags(cluster: Cluster, spec: Container, role: str = "") -> dict[str, str]:
    """Returns the labels of all that belongs to a cluster, or of a role's Job and pods."""
    of_role = {labels.ROLE: role, labels.LEADER: str(cluster.leader.role == role).lower()}
    shared = {labels.CLUSTER: cluster.name, labels.PLAN: spec.labels[labels.PLAN]}
    return {**shared, **of_role} if role else shared


def _job(
    cluster: Cluster,
    tasks: Sequence[Task],
    specs: Sequence[Container],
    files: Sequence[Carried],
) -> Object:
    role, first, on = tasks[0].role, specs[0], settings_of(cluster)
    job_labels = tags(cluster, first, role)
    deadlines = cluster.deadlines
    longest = deadlines.start + deadlines.job + deadlines.evaluator_grace + PULLING_S
    spec: Object = {
        "completionMode": "Indexed",
        "completions": len(tasks),
        "parallelism": len(tasks),
        "activeDeadlineSeconds": math.ceil(longest),
        "podReplacementPolicy": "Failed",
    }
    # A leader is not restarted, since its end decides the job. A leader that is a worker has the
    # restarts of the workers' Job.
    restarts = max(spec.restarts for spec in specs)
    if on.jobset and role != cluster.leader.role:
        restarts = ENDLESS
    # By its index, so that a task that has failed for good does not end the others.
    by_index = restarts or (cluster.success is not None and len(tasks) > 1)
    spec |= {"backoffLimitPerIndex": restarts} if by_index else {"backoffLimit": 0}
    if on.queue and not on.jobset:
        job_labels, spec["suspend"] = job_labels | {QUEUE: on.queue}, True
    spec["template"] = {
        "metadata": {"labels": tags(cluster, first, role), **_secrets_of(first)},
        "spec": _pod(cluster, tasks, specs, files),
    }
    metadata = {"name": kubernetes_job(cluster.name, role, in_set=on.jobset), "labels": job_labels}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def _secrets_of(spec: Container) -> Object:
    names = spec.labels[labels.SECRETS]
    return {"annotations": {labels.SECRETS: names}} if names else {}


def _pod(
    cluster: Cluster,
    tasks: Sequence[Task],
    specs: Sequence[Container],
    files: Sequence[Carried],
) -> Object:
    task, on = tasks[0], settings_of(cluster)
    volumes_, mounts = volumes(cluster, specs[0], files)
    pod: Object = {
        "subdomain": kubernetes_name(cluster.name),
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": specs[0].stop_grace_s,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "shareProcessNamespace": specs[0].init,  # the pod's init process then reaps zombies
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


def confined(spec: Container) -> Object:
    """Returns the security context of a container under the restricted profile."""
    return {
        "allowPrivilegeEscalation": not spec.no_new_privileges,
        "readOnlyRootFilesystem": spec.read_only,
        "capabilities": {"drop": list(spec.cap_drop)},
    }


def _container(
    cluster: Cluster, tasks: Sequence[Task], specs: Sequence[Container], mounts: list[Object]
) -> Object:
    first, on = specs[0], settings_of(cluster)
    container: Object = {
        "name": CONTAINER,
        "image": first.image,
        "imagePullPolicy": on.pull_policy,
        "args": command(specs),
        "env": _variables(cluster, tasks, specs),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": confined(first),
    }
    if resources := _resources(first):
        container["resources"] = resources
    return {**container, "volumeMounts": mounts}


def _variables(cluster: Cluster, tasks: Sequence[Task], specs: Sequence[Container]) -> list[Object]:
    """Returns the container's variables; the index comes before the variables that use it."""
    common = shared_variables(cluster)
    shared = {k: v for k, v in common.items() if k not in GROWING} | {SHARED: f"{CONFIG}/{FILE}"}
    tables = [
        shared | without_shared(task, {**spec.besides(common), **spec.hidden})
        for task, spec in zip(tasks, specs, strict=True)
    ]
    variables: list[Object] = [
        {"name": INDEX, "valueFrom": {"fieldRef": {"fieldPath": COMPLETION_INDEX}}}
    ]
    variables += [{"name": k, "value": v} for k, v in environment(specs, tables).items()]
    secret, _ = kubernetes_secrets(cluster.name)
    for name in specs[0].secrets:
        source = {"secretKeyRef": {"name": secret, "key": name}}
        variables.append({"name": name, "valueFrom": source})
    return variables


def _resources(spec: Container) -> Object:
    """Returns limits, and equal requests, so that the node reserves them for this container."""
    limits: dict[str, str] = {}
    if spec.cpus is not None:
        limits["cpu"] = f"{math.ceil(spec.cpus * 1000)}m"
    if spec.memory is not None:
        limits["memory"] = str(spec.memory)
    gpus = {GPU: str(len(spec.devices.ids))} if spec.devices else {}
    resources: Object = {"limits": limits | gpus} if limits or gpus else {}
    return resources | ({"requests": limits} if limits else {})


def _affinity(constraints: Sequence[str]) -> Object:
    expressions: list[dict[str, Any]] = []
    for label, sign, value in map(requirement, constraints):
        operator = "In" if sign == "==" else "NotIn"
        expressions.append({"key": label, "operator": operator, "values": [value]})
    terms = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def jobset(cluster: Cluster, jobs: Sequence[Object]) -> Object:
    """Returns the JobSet with these Jobs; it succeeds with its leader, and an evaluator's last
    score."""
    on = settings_of(cluster)
    name = kubernetes_name(cluster.name)
    set_labels = {key: jobs[0]["metadata"]["labels"][key] for key in (labels.CLUSTER, labels.PLAN)}
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
        set_labels[QUEUE] = on.queue
        spec = {"suspend": True, **spec}
    metadata = {"name": name, "labels": set_labels}
    return {"apiVersion": GROUP, "kind": "JobSet", "metadata": metadata, "spec": spec}


def _replicated(job: Object) -> Object:
    job_labels = job["metadata"]["labels"]
    template = {"metadata": {"labels": job_labels}, "spec": job["spec"]}
    name = kubernetes_role(job_labels[labels.ROLE])
    return {"name": name, "replicas": 1, "template": template}


def templates(one: Object) -> list[Object]:
    """Returns the Jobs in an object, each with its labels and its spec: a Job, or a set's."""
    if one["kind"] == "Job":
        return [one]
    if one["kind"] == "JobSet":
        return [replicated["template"] for replicated in one["spec"]["replicatedJobs"]]
    return []
