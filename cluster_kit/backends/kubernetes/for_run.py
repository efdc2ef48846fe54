"""The objects of a file as `up` makes them for one run: labelled, each run's output by itself,
with the Secrets, and with the pod that prints what tasks write. Pure but for its files."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from cluster_kit import labels
from cluster_kit.backends.kubernetes.files import SECRET_FILES
from cluster_kit.backends.kubernetes.jobset import templates
from cluster_kit.backends.variables import BEACON_SECRET, new_secret
from cluster_kit.engine.kubernetes.pods import OUTPUT, TASK
from cluster_kit.engine.kubernetes.watching import READER

Object = dict[str, Any]
READS_WITH = {
    "limits": {"cpu": "200m", "memory": "128Mi"},
    "requests": {"cpu": "20m", "memory": "64Mi"},
}
"""What the pod that prints takes; a namespace with a quota wants to know."""


def for_run(
    objects: list[Object], run: str, output: Path, environment: Mapping[str, str]
) -> list[Object]:
    """Returns the objects in the order in which they are made, Jobs or their set last.

    Args:
        output: the directory of this host that progress files are brought to.
        environment: has the values of secrets.
    Raises:
        OSError: the file of a secret cannot be read.
    """
    environment = {**environment, **new_secret()}
    made = [_labelled(one, run, output) for one in objects]
    last = [one for one in made if templates(one)]
    others = [one for one in made if not templates(one)]
    jobs = [job for one in last for job in templates(one)]
    leader = next(one for one in jobs if one["metadata"]["labels"][labels.LEADER] == "true")
    secrets = [*_from_environment(others[0], jobs, environment), *_from_files(others)]
    return [*others, *secrets, reader(leader, others[0]), *last]


def _labelled(one: Object, run: str, output: Path) -> Object:
    made = copy.deepcopy(one)
    metadata = made["metadata"]
    metadata["labels"][labels.RUN] = run
    for job in templates(made):
        of_job, template = job["metadata"], job["spec"]["template"]
        of_job["labels"][labels.RUN] = template["metadata"]["labels"][labels.RUN] = run
        of_job["annotations"] = {**of_job.get("annotations", {}), OUTPUT: str(output)}
        (container,) = template["spec"]["containers"]
        secret, _ = labels.kubernetes_secrets(metadata["labels"][labels.CLUSTER])
        source = {"secretKeyRef": {"name": secret, "key": BEACON_SECRET, "optional": True}}
        container["env"].append({"name": BEACON_SECRET, "valueFrom": source})
        for mount in container["volumeMounts"]:
            if mount["name"] == "output":
                mount["subPath"] = f"{metadata['labels'][labels.CLUSTER]}/{output.parent.name}"
    return made


def reader(job: Object, like: Object) -> Object:
    """Returns the pod that prints what tasks write, with the rights of this Job's pods, and the
    labels and the namespace of another object."""
    metadata, spec = like["metadata"], copy.deepcopy(job["spec"]["template"]["spec"])
    own = metadata["labels"]
    name = f"{labels.kubernetes_name(own[labels.CLUSTER])}-{READER}"
    (task,) = spec["containers"]
    script = resources.files("cluster_kit.backends.kubernetes.inside") / "reader.py"
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
    marks = {labels.CLUSTER: own[labels.CLUSTER], labels.RUN: own[labels.RUN]}
    meta = {"name": name, "labels": {**marks, labels.SIDECAR: READER}}
    if "namespace" in metadata:
        meta["namespace"] = metadata["namespace"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def _from_environment(
    like: Object, jobs: list[Object], environment: Mapping[str, str]
) -> list[Object]:
    found: dict[str, dict[str, str]] = {}
    for job in jobs:
        (container,) = job["spec"]["template"]["spec"]["containers"]
        for variable in container["env"]:
            if ref := variable.get("valueFrom", {}).get("secretKeyRef"):
                found.setdefault(ref["name"], {})[ref["key"]] = environment.get(ref["key"], "")
    return [_secret(like, name, values) for name, values in found.items()]


def _from_files(others: list[Object]) -> list[Object]:
    made = []
    for one in others:
        files = (one["metadata"].get("annotations") or {}).get(SECRET_FILES)
        if files:
            values = {key: Path(file).read_bytes() for key, file in json.loads(files).items()}
            texts = {key: base64.b64encode(value).decode() for key, value in values.items()}
            made.append(_secret(one, f"{one['metadata']['name']}-files", {}) | {"data": texts})
    return made


def _secret(like: Object, name: str, values: dict[str, str]) -> Object:
    meta = like["metadata"]
    kept = {key: meta["labels"][key] for key in (labels.CLUSTER, labels.RUN)}
    made = {"name": name, "labels": kept}
    if "namespace" in meta:
        made["namespace"] = meta["namespace"]
    return {"apiVersion": "v1", "kind": "Secret", "metadata": made, "stringData": values}
