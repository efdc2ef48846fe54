"""Creates a run's objects, and waits until its pods have started."""

from __future__ import annotations

import base64
import copy
import json
import time
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from cluster_kit import labels
from cluster_kit.errors import EngineError
from cluster_kit.platforms.kubernetes.carried_files import SECRET_FILES
from cluster_kit.platforms.kubernetes.kubernetes_api import OF_QUOTA, QUOTA, Api, Refused
from cluster_kit.platforms.kubernetes.kubernetes_engine import READER, KubernetesEngine
from cluster_kit.platforms.kubernetes.kubernetes_jobs import templates
from cluster_kit.platforms.kubernetes.kubernetes_pods import (
    NOT_INSTALLED,
    NOT_MADE,
    NOT_READY,
    OUTPUT,
    TASK,
    by_task,
    has_run,
    waits_for,
)
from cluster_kit.platforms.kubernetes.kubernetes_settings import (
    GROUP,
    kubernetes_name,
    kubernetes_secrets,
)
from cluster_kit.platforms.variables import BEACON_SECRET, new_secret

Object = dict[str, Any]
READS_WITH = {
    "limits": {"cpu": "200m", "memory": "128Mi"},
    "requests": {"cpu": "20m", "memory": "64Mi"},
}
"""The resources of the pod that prints the tasks' files; a namespace with a quota requires them."""


def for_run(
    objects: list[Object], run: str, output: Path, environment: Mapping[str, str]
) -> list[Object]:
    """Returns the objects in the order in which they are created, Jobs or their set last.

    Args:
        output: the directory of this host to which progress files are copied. environment: the
            variables with the values of secrets.
    Raises:
        OSError: the file of a secret cannot be read.
    """
    environment = {**environment, **new_secret()}
    labelled = [_labelled(one, run, output) for one in objects]
    last = [one for one in labelled if templates(one)]
    others = [one for one in labelled if not templates(one)]
    jobs = [job for one in last for job in templates(one)]
    leader = next(one for one in jobs if one["metadata"]["labels"][labels.LEADER] == "true")
    secrets = [*_from_environment(others[0], jobs, environment), *_from_files(others)]
    return [*others, *secrets, reader(leader, others[0]), *last]


def _labelled(one: Object, run: str, output: Path) -> Object:
    labelled = copy.deepcopy(one)
    metadata = labelled["metadata"]
    metadata["labels"][labels.RUN] = run
    for job in templates(labelled):
        of_job, template = job["metadata"], job["spec"]["template"]
        of_job["labels"][labels.RUN] = template["metadata"]["labels"][labels.RUN] = run
        of_job["annotations"] = {**of_job.get("annotations", {}), OUTPUT: str(output)}
        (container,) = template["spec"]["containers"]
        secret, _ = kubernetes_secrets(metadata["labels"][labels.CLUSTER])
        source = {"secretKeyRef": {"name": secret, "key": BEACON_SECRET, "optional": True}}
        container["env"].append({"name": BEACON_SECRET, "valueFrom": source})
        for mount in container["volumeMounts"]:
            if mount["name"] == "output":
                mount["subPath"] = f"{metadata['labels'][labels.CLUSTER]}/{output.parent.name}"
    return labelled


def reader(job: Object, like: Object) -> Object:
    """Returns the reader pod, which prints the tasks' files; it has the rights of this Job's pods,
    and the labels and the namespace of another object."""
    metadata, spec = like["metadata"], copy.deepcopy(job["spec"]["template"]["spec"])
    job_labels = metadata["labels"]
    name = f"{kubernetes_name(job_labels[labels.CLUSTER])}-{READER}"
    (task,) = spec["containers"]
    script = resources.files("cluster_kit.platforms.kubernetes") / "output_reader.py"
    container = {key: task[key] for key in ("image", "imagePullPolicy", "securityContext")}
    container |= {
        "name": TASK,
        "resources": READS_WITH,
        "command": ["python3", "-u", "-c", script.read_text(encoding="utf-8")],
        "volumeMounts": [
            mount | {"readOnly": True}
            for mount in task["volumeMounts"]
            if mount["name"] == "output"
        ],
    }
    volumes = [one for one in spec["volumes"] if one["name"] == "output"]
    spec |= {"containers": [container], "volumes": volumes, "restartPolicy": "OnFailure"}
    spec.pop("subdomain", None)
    marks = {labels.CLUSTER: job_labels[labels.CLUSTER], labels.RUN: job_labels[labels.RUN]}
    meta = {"name": name, "labels": {**marks, labels.SIDECAR: READER}}
    if "namespace" in metadata:
        meta["namespace"] = metadata["namespace"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def _from_environment(
    like: Object, jobs: list[Object], environment: Mapping[str, str]
) -> list[Object]:
    secret_values: dict[str, dict[str, str]] = {}
    for job in jobs:
        (container,) = job["spec"]["template"]["spec"]["containers"]
        for variable in container["env"]:
            if ref := variable.get("valueFrom", {}).get("secretKeyRef"):
                secret_values.setdefault(ref["name"], {})[ref["key"]] = environment.get(
                    ref["key"], ""
                )
    return [_secret(like, name, values) for name, values in secret_values.items()]


def _from_files(others: list[Object]) -> list[Object]:
    secrets = []
    for one in others:
        files = (one["metadata"].get("annotations") or {}).get(SECRET_FILES)
        if files:
            values = {key: Path(file).read_bytes() for key, file in json.loads(files).items()}
            texts = {key: base64.b64encode(value).decode() for key, value in values.items()}
            secrets.append(_secret(one, f"{one['metadata']['name']}-files", {}) | {"data": texts})
    return secrets


def _secret(like: Object, name: str, values: dict[str, str]) -> Object:
    meta = like["metadata"]
    kept = {key: meta["labels"][key] for key in (labels.CLUSTER, labels.RUN)}
    metadata = {"name": name, "labels": kept}
    if "namespace" in meta:
        metadata["namespace"] = meta["namespace"]
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": values}


POLL_S = 1.0
PATIENCE_S = 15.0
"""Seconds for which a problem must last before it is an error: Kubernetes retries by itself."""
NODE_PATIENCE_S = 180.0
"""An autoscaler may first have to create a node for a pod, and JobSet's controller may be busy or
just starting."""
MOUNT_PATIENCE_S = 600.0
"""A volume may be attached late, and a slow pull hides the moment at which it is."""
LONGEST_S = 1800.0
PATHS = {
    "Service": "services",
    "NetworkPolicy": "networkpolicies",
    "ConfigMap": "configmaps",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "Secret": "secrets",
    "Pod": "pods",
    "Job": "jobs",
    "JobSet": "jobsets",
}
KEEPS = ("PersistentVolumeClaim",)


def make(api: Api, objects: Sequence[Mapping[str, Any]]) -> None:
    """Create objects; existing ones are changed, except claims. Raises EngineError.

    The kit's own Secret is skipped if the user may not create or delete Secrets: tasks then agree
    on a secret themselves, and no object remains that the user cannot remove.
    """
    for one in objects:
        is_ours = list(one.get("stringData", ())) == [BEACON_SECRET]
        if is_ours and not api.may("delete", "", "secrets"):
            continue
        path = api.of(one["apiVersion"], PATHS[one["kind"]])
        try:
            api.post(path, dict(one))
        except Refused as error:
            if error.status == 404 and one["kind"] == "JobSet" and not api.knows(GROUP):
                raise EngineError(*NOT_INSTALLED) from None
            if error.status == 403 and is_ours:
                continue
            if error.status != 409 or one["kind"] in ("Pod", "Job", "JobSet"):
                raise
            if one["kind"] not in KEEPS:
                api.patch(f"{path}/{one['metadata']['name']}", dict(one))


def wait_for_start(engine: KubernetesEngine, cluster: str, run: str) -> None:
    """Wait until every task has a started pod, even if a queue holds them back for long.

    Raises:
        EngineError: some pods have not started; the message says why.
    """
    began, since = time.monotonic(), dict[tuple[str, float], float]()
    while True:
        waiting, why = not_started(engine, cluster, run)
        now = time.monotonic()
        if waiting and engine.is_queued(cluster, run):
            began = now  # a queue may take hours
        lasting = {task: (task, _patience(reason)) for task, reason in why.items()}
        since = {key: since.get(key, now) for key in lasting.values()}
        late = {t: why[t] for t, key in lasting.items() if now - since[key] > key[1]}
        if not waiting:
            return
        if late or now - began > LONGEST_S:
            raise refusal(waiting, late or why)
        time.sleep(POLL_S)


def not_started(
    engine: KubernetesEngine, cluster: str, run: str
) -> tuple[list[str], dict[str, str]]:
    """(names of tasks whose pods have never run, the reasons by task).

    The reason of a refused pod is returned until another one runs.
    """
    containers, groups = engine.containers(cluster, run), by_task(engine.pods(cluster, run))
    stopped = {one.id for one in containers if one.state == "exited" and one.id not in groups}
    waiting = {
        one.id: one.name
        for one in containers
        if one.id not in stopped and not any(map(has_run, groups.get(one.id, ())))
    }
    pending, silent = {}, []
    for known, name in waiting.items():
        causes = [why for pod in groups.get(known, ()) if (why := waits_for(pod)) != ("", "")]
        if causes:
            pending[name] = "{}: {}".format(*causes[-1]).strip(": ")
        else:
            silent.append(known)
    complaints = engine.complaints(cluster) if silent else {}
    for known in silent:
        pods = groups.get(known)
        about = pods[-1]["metadata"]["name"] if pods else known.partition("/")[0]
        if complaint := complaints.get(about):
            pending[waiting[known]] = complaint
    return [*waiting.values()], pending


def _patience(said: str) -> float:
    if said.startswith(NOT_READY):
        return MOUNT_PATIENCE_S
    return NODE_PATIENCE_S if said.startswith(("Unschedulable", NOT_MADE)) else PATIENCE_S


def refusal(waiting: Sequence[str], why: Mapping[str, str]) -> EngineError:
    """The error for pods that have not started; each reason appears once."""
    reasons: dict[str, list[str]] = {}
    for task, reason in why.items():
        reasons.setdefault(reason, []).append(task)
    lines = [f"{', '.join(tasks)}: {reason}" for reason, tasks in reasons.items()]
    if not lines:
        lines = [f"{', '.join(waiting)}: Kubernetes gave no reason"]
    listed = "\n".join(f"  {line}" for line in lines)
    return EngineError(f"Kubernetes has not started every task:\n{listed}", _hint(listed))


def _hint(said: str) -> str:
    if "ErrImagePull" in said or "ImagePullBackOff" in said or "InvalidImageName" in said:
        return (
            "push the image to where the nodes pull from, and name it: `docker push`, "
            "`kubernetes.registry`, `kubernetes.pull_secret`"
        )
    if any(words in said for words in OF_QUOTA):
        return QUOTA
    if NOT_MADE in said:
        return "`kubectl get pods -n jobset-system` shows whether its controller runs"
    if "violates PodSecurity" in said or "forbidden" in said:
        return "the namespace does not allow such pods: `kubernetes.namespace` names another"
    if "PersistentVolumeClaim" in said or "persistentvolumeclaim" in said:
        return (
            "`kubectl get pvc` shows the claim: it needs a StorageClass with ReadWriteMany, "
            "`kubernetes.storage_class`"
        )
    if any(words in said for words in NOT_READY):
        return "`kubectl describe pods` says more: of volumes look at `kubectl get pvc,pv`"
    if "StartError" in said or "ContainerCannotRun" in said:
        return "the node has the image, and cannot start it: fix what it says, or `nodes`"
    if "Unschedulable" in said:
        return "no node has the resources for it: lower `cpus`, `memory` or `gpus`, or fix `nodes`"
    return "`kubectl describe pods -l cluster-kit.cluster=NAME` says more"
