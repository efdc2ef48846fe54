"""The volumes of a pod as directories of this host, and the mounts of its container.

https://kubernetes.io/docs/concepts/storage/volumes/
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.kubelet.expand import Objects
from tests.kubelet.pods import Pod


def mounted(pod: Pod, known: Objects, root: Path) -> tuple[list[str], dict[str, str]]:
    """Returns (`-v` values, {path in memory: options}) of a pod's container.

    Args:
        root: claims are directories in `root/claims`, which all pods share.
    """
    group = pod.spec["securityContext"]["fsGroup"]
    own = root / pod.hostname
    binds, memory = [], {}
    volumes = {one["name"]: one for one in pod.spec["volumes"]}
    for mount in pod.container["volumeMounts"]:
        volume, path = volumes[mount["name"]], mount["mountPath"]
        if volume.get("emptyDir", {}).get("medium") == "Memory":
            size = volume["emptyDir"].get("sizeLimit")
            memory[path] = f"mode=1777,gid={group}" + (f",size={size}" if size else "")
            continue
        source = _source(volume, known, own, root / "claims", group)
        if sub := mount.get("subPath"):
            source = _below(source, sub)
        binds.append(f"{source}:{path}:{'ro' if mount.get('readOnly') else 'rw'}")
    return binds, memory


def _source(volume: Mapping[str, Any], known: Objects, own: Path, claims: Path, group: int) -> Path:
    if "persistentVolumeClaim" in volume:
        return _writable(claims / volume["persistentVolumeClaim"]["claimName"], group)
    if "emptyDir" in volume:
        return _writable(own / volume["name"], group)
    folder = own / volume["name"]
    kind = "ConfigMap" if "configMap" in volume else "Secret"
    source = volume["configMap" if kind == "ConfigMap" else "secret"]
    name = source["name" if kind == "ConfigMap" else "secretName"]
    contents = {key: text.encode() for key, text in known.data(kind, name).items()}
    contents |= {key: base64.b64decode(t) for key, t in known.binary(kind, name).items()}
    items = source.get("items") or [{"key": key, "path": key} for key in contents]
    for item in items:
        file = folder / item["path"]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(contents[item["key"]])
        os.chown(file, 0, group)
        file.chmod(source.get("defaultMode", 0o644))
    return folder


def _writable(folder: Path, group: int) -> Path:
    """Make a volume writable for the pod's group, as `fsGroup` does."""
    if not folder.exists():
        folder.mkdir(parents=True)
        os.chown(folder, 0, group)
        folder.chmod(0o2775)
    return folder


def _below(folder: Path, sub: str) -> Path:
    """Returns a folder in a volume, created with the volume's own permissions if it does not
    exist."""
    found = folder / sub
    if not found.exists():
        found.mkdir(parents=True)
        os.chown(found, 0, folder.stat().st_gid)
        found.chmod(folder.stat().st_mode & 0o7777)
    return found
