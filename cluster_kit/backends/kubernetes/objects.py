"""All that a cluster is on Kubernetes, in the order in which it is made. Pure."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence

from cluster_kit.backends.container_spec import container_specs
from cluster_kit.backends.kubernetes.files import SECRET_FILES, Carried, secret_files
from cluster_kit.backends.kubernetes.jobs import jobs, tags
from cluster_kit.backends.kubernetes.jobset import jobset
from cluster_kit.backends.kubernetes.volumes import Object, keys
from cluster_kit.backends.shared_file import FILE, spec_text
from cluster_kit.cluster import BEACON_PORT_OFFSET, Cluster
from cluster_kit.labels import kubernetes_name


def objects(cluster: Cluster, files: Sequence[Carried]) -> list[Object]:
    """Returns Service, NetworkPolicy, ConfigMaps, claim, and Jobs or their JobSet, each with the
    kit's labels."""
    own = tags(cluster, container_specs(cluster)[0])
    name, on = kubernetes_name(cluster.name), cluster.kubernetes
    assert on is not None
    found = [
        _service(cluster, name, own),
        _policy(name, own, anywhere=on.egress),
        _shared(cluster, name, own),
        *(_files(one, own) for one in files),
    ]
    if on.storage is not None:
        found.append(_claim(cluster, own))
    made = jobs(cluster, files)
    found += [jobset(cluster, made)] if on.jobset else made
    if on.namespace:
        for one in found:
            meta = one["metadata"]
            one["metadata"] = {"name": meta["name"], "namespace": on.namespace, **meta}
    return found


def _named(version: str, kind: str, name: str, own: dict[str, str]) -> Object:
    metadata = {"name": name, "labels": own}
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


def _selector(own: dict[str, str]) -> dict[str, str]:
    """The label by which all pods of a cluster are found: the first."""
    return dict([next(iter(own.items()))])


def _service(cluster: Cluster, name: str, own: dict[str, str]) -> Object:
    """Without an address of its own: it gives each pod its name, ready or not."""
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
    """TensorFlow's gRPC is not authenticated: nobody else may reach a task."""
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
    """What grows with the cluster, once; and of which files `up` makes the Secret."""
    made = _named("v1", "ConfigMap", name, own)
    if files := secret_files(cluster):
        made["metadata"]["annotations"] = {SECRET_FILES: json.dumps(files)}
    return made | {"data": {FILE: spec_text(cluster)}}


def _files(one: Carried, own: dict[str, str]) -> Object:
    made = _named("v1", "ConfigMap", one.name, own)
    data, binary = {}, {}
    for key, path in keys(one.files).items():
        try:
            data[key] = one.files[path].decode("utf-8")
        except UnicodeDecodeError:
            binary[key] = base64.b64encode(one.files[path]).decode("ascii")
    return made | ({"data": data} if data else {}) | ({"binaryData": binary} if binary else {})


def _claim(cluster: Cluster, own: dict[str, str]) -> Object:
    on = cluster.kubernetes
    assert on is not None
    spec: Object = {
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": str(on.storage)}},
    }
    if on.storage_class:
        spec["storageClassName"] = on.storage_class
    return _named("v1", "PersistentVolumeClaim", on.claim, own) | {"spec": spec}
