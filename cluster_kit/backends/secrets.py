"""Secrets that are files of this host, as secrets of a swarm: no node needs the file. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from cluster_kit.backends.yaml import quote
from cluster_kit.cluster import SECRETS, Cluster, Task
from cluster_kit.parts import Mount


@dataclass(frozen=True)
class FileSecret:
    """One secret's values as YAML text: its name, its file, and whose it is in a container."""

    name: str
    file: str
    uid: str
    gid: str


def is_secret(mount: Mount) -> bool:
    """Whether a mount is a secret."""
    return PurePosixPath(mount.target).parent == PurePosixPath(SECRETS)


def file_secrets(cluster: Cluster, task: Task | None = None) -> tuple[FileSecret, ...]:
    """Returns the secrets of a task, or of all tasks, by name."""
    mounts = cluster.all_mounts if task is None else (*cluster.mounts, *task.mounts)
    uid, _, gid = cluster.user.partition(":")
    found = {PurePosixPath(m.target).name: m.source for m in mounts if is_secret(m)}
    return tuple(
        FileSecret(name, quote(source), quote(uid), quote(gid or uid))
        for name, source in sorted(found.items())
    )
