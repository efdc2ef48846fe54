"""The volumes of a pod, and where its container has them mounted. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from cluster_kit.backends.container_spec import ContainerSpec
from cluster_kit.backends.kubernetes.files import Carried
from cluster_kit.backends.secrets import is_secret
from cluster_kit.cluster import SECRETS, Cluster
from cluster_kit.labels import kubernetes_name

CONFIG = "/run/cluster-kit"
"""Where the ConfigMap with what grows with the cluster is mounted."""
SHM = 64 * 2**20
"""Bytes of /dev/shm where nothing else is said, as in Docker's containers."""
Object = dict[str, Any]


def volumes(
    cluster: Cluster, spec: ContainerSpec, files: Sequence[Carried]
) -> tuple[list[Object], list[Object]]:
    """Returns the volumes of a pod and the mounts of its container, in the same order."""
    name, on = kubernetes_name(cluster.name), cluster.kubernetes
    assert on is not None  # it is a cluster of this engine
    found: list[tuple[Object, list[Object]]] = [
        _volume("cluster", {"configMap": {"name": name}}, CONFIG, read_only=True),
        output(cluster, spec.shared.output),
        _volume("shm", _memory(spec.shm or SHM), "/dev/shm"),
    ]
    for path in spec.shared.tmpfs:
        empty = _memory() if path == SECRETS else _empty(spec.shared.bounds.tmp)
        found.append(_volume(PurePosixPath(path).name, empty, path))
    mounts = [*spec.shared.mounts, *spec.mounts]
    targets = {mount.target for mount in mounts}
    found += [_files(one) for one in files if one.target in targets]
    claims = [one for one in on.claims if one[0] in targets]
    read_only = {mount.target: mount.read_only for mount in mounts}
    for number, (target, claim, folder) in enumerate(claims):
        source = {"persistentVolumeClaim": {"claimName": claim}}
        extra = {"subPath": folder} if folder else {}
        ro = read_only[target]
        found.append(_volume(f"claim-{number}", source, target, read_only=ro, **extra))
    secrets = [mount for mount in mounts if is_secret(mount)]
    if secrets:
        found.append(_secrets(f"{name}-files", [mount.target for mount in secrets]))
    return [volume for volume, _ in found], [mount for _, own in found for mount in own]


def output(cluster: Cluster, path: str) -> tuple[Object, list[Object]]:
    """Returns the volume at the output's path, and its mount: a folder of its own in a claim."""
    assert cluster.kubernetes is not None
    claim = cluster.kubernetes.claim
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
