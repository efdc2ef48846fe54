"""Renders kubernetes.yaml: the objects of a cluster. Pure."""

from __future__ import annotations

import base64
import json
import shlex
from collections.abc import Iterator, Sequence

from cluster_kit.contract.times import BEACON_PORT_OFFSET
from cluster_kit.labels import CLUSTER, PLAN
from cluster_kit.platforms.container import cluster_labels
from cluster_kit.platforms.kubernetes.carried_files import SECRET_FILES, Carried, secret_files
from cluster_kit.platforms.kubernetes.kubernetes_jobs import Object, jobs, jobset, keys
from cluster_kit.platforms.kubernetes.kubernetes_settings import (
    kubernetes_job,
    kubernetes_name,
    settings_of,
)
from cluster_kit.platforms.rendered_file import (
    FILE,
    block,
    comment,
    header,
    scalar,
    spec_text,
    with_content,
)
from cluster_kit.resolved import Cluster


def objects(cluster: Cluster, files: Sequence[Carried]) -> list[Object]:
    """Returns Service, NetworkPolicy, ConfigMaps, claim, and Jobs or their JobSet, each with the
    kit's labels."""
    tags = cluster_labels(cluster)
    name, on = kubernetes_name(cluster.name), settings_of(cluster)
    documents = [
        _service(cluster, name, tags),
        _policy(name, tags, anywhere=on.egress),
        _shared(cluster, name, tags),
        *(_files(one, tags) for one in files),
    ]
    if on.storage is not None:
        documents.append(_claim(cluster, tags))
    made_jobs = jobs(cluster, files)
    documents += [jobset(cluster, made_jobs)] if on.jobset else made_jobs
    if on.namespace:
        for one in documents:
            meta = one["metadata"]
            one["metadata"] = {"name": meta["name"], "namespace": on.namespace, **meta}
    return documents


def _named(version: str, kind: str, name: str, own: dict[str, str]) -> Object:
    metadata = {"name": name, "labels": own}
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


def _selector(own: dict[str, str]) -> dict[str, str]:
    """The label by which all pods of a cluster are found: the first."""
    return dict([next(iter(own.items()))])


def _service(cluster: Cluster, name: str, own: dict[str, str]) -> Object:
    """A headless service: it gives each pod a DNS name, ready or not."""
    spec = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": _selector(own),
        "ports": [
            {"name": "tensorflow", "port": cluster.port},
            {"name": "beacon", "port": cluster.port + BEACON_PORT_OFFSET},
        ],
    }
    return _named("v1", "Service", name, own) | {"spec": spec}


def _policy(name: str, own: dict[str, str], *, anywhere: bool) -> Object:
    """A network policy: only the job's pods can reach a task, since gRPC is not authenticated."""
    peers = [{"podSelector": {"matchLabels": _selector(own)}}]
    dns = {"ports": [{"protocol": protocol, "port": 53} for protocol in ("UDP", "TCP")]}
    spec: Object = {
        "podSelector": {"matchLabels": _selector(own)},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"from": peers}],
        "egress": [{}] if anywhere else [{"to": peers}, dns],
    }
    return _named("networking.k8s.io/v1", "NetworkPolicy", name, own) | {"spec": spec}


def _shared(cluster: Cluster, name: str, own: dict[str, str]) -> Object:
    """The ConfigMap with values that grow with the cluster; its annotation names the files from
    which `up` creates the Secret."""
    config_map = _named("v1", "ConfigMap", name, own)
    if files := secret_files(cluster):
        config_map["metadata"]["annotations"] = {SECRET_FILES: json.dumps(files)}
    return config_map | {"data": {FILE: spec_text(cluster)}}


def _files(one: Carried, own: dict[str, str]) -> Object:
    config_map = _named("v1", "ConfigMap", one.name, own)
    data, binary = {}, {}
    for key, path in keys(one.files).items():
        try:
            data[key] = one.files[path].decode("utf-8")
        except UnicodeDecodeError:
            binary[key] = base64.b64encode(one.files[path]).decode("ascii")
    return (
        config_map | ({"data": data} if data else {}) | ({"binaryData": binary} if binary else {})
    )


def _claim(cluster: Cluster, own: dict[str, str]) -> Object:
    on = settings_of(cluster)
    spec: Object = {
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": str(on.storage)}},
    }
    if on.storage_class:
        spec["storageClassName"] = on.storage_class
    return _named("v1", "PersistentVolumeClaim", on.claim, own) | {"spec": spec}


def render(cluster: Cluster, files: Sequence[Carried]) -> str:
    """Returns the file: the same cluster and the same files give the same text."""
    plan = cluster_labels(cluster)[PLAN]
    head = [f"# {line}" for line in header(cluster, plan, own_lines(cluster))]
    documents = [block(one, quote=scalar) for one in objects(cluster, files)]
    return with_content("\n".join(head) + "\n---\n" + "\n---\n".join(documents) + "\n")


def own_lines(cluster: Cluster) -> list[str]:
    """The comment lines at the beginning of the file."""
    name = kubernetes_name(cluster.name)
    on = settings_of(cluster)
    kubectl = f"kubectl -n {on.namespace}" if on.namespace else "kubectl"
    leader = kubernetes_job(cluster.name, cluster.leader.role, in_set=on.jobset)
    jobs = "jobset" if on.jobset else "job"
    return [
        f"`{kubectl} apply -f kubernetes.yaml` starts it. Nodes need its image:",
        f"{cluster.image}",
        *_secrets(cluster, f"{kubectl} create secret generic {name}"),
        f"`{kubectl} logs -f job/{leader}` shows its leader, whose end decides the job.",
        f"`{kubectl} delete {jobs},svc,cm,netpol -l {CLUSTER}={cluster.name}` removes it; the "
        "results stay in its claim.",
    ]


def _secrets(cluster: Cluster, create: str) -> Iterator[str]:
    """Yields the commands that create the Secrets, since the file has no values."""
    if names := cluster.from_caller:
        # No value is an argument, which every user of the host could read.
        values = " ".join(f'--from-file={one}=<(printf %s "${one}")' for one in names)
        yield f"First, in Bash: `{create}-env {values}`"
    if files := secret_files(cluster):
        values = " ".join(shlex.quote(f"--from-file={key}={path}") for key, path in files.items())
        yield comment(f"First: `{create}-files {values}`")
