"""Files of this host that nodes are given in a ConfigMap: a program, small data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from cluster_kit.backends.secrets import is_secret
from cluster_kit.cluster import Cluster
from cluster_kit.errors import UsageError
from cluster_kit.labels import kubernetes_name
from cluster_kit.parts import Mount

LARGEST = 700 * 1024
"""Bytes of all such files: a ConfigMap holds 1 MiB, in which bytes are written as base64."""
MOST = 200
SKIPPED = frozenset(("__pycache__", "runs", "fetched", "portable", "node_modules"))
SECRET_FILES = "cluster-kit.secret-files"
"""The annotation with the files of this host of which a Secret is made, as JSON."""
Files = Mapping[str, bytes]
"""Contents by path below a mount; {"": …} for a mount that is one file."""


@dataclass(frozen=True)
class Carried:
    """A mount whose files are in the ConfigMap with this name."""

    name: str
    target: str
    files: Files


def host_mounts(cluster: Cluster) -> tuple[Mount, ...]:
    """Returns the mounts that no claim takes the place of, without secrets."""
    claimed = {target for target, _, _ in (cluster.kubernetes.claims if cluster.kubernetes else ())}
    return tuple(
        mount
        for mount in cluster.all_mounts
        if not is_secret(mount) and mount.target not in claimed
    )


def secret_files(cluster: Cluster) -> dict[str, str]:
    """Returns the paths on this host of the secrets that are files, by name."""
    found = {PurePosixPath(m.target).name: m.source for m in cluster.all_mounts if is_secret(m)}
    return dict(sorted(found.items()))


def carried(cluster: Cluster, read: Callable[[Mount], Files]) -> tuple[Carried, ...]:
    """Returns the ConfigMaps of a cluster's mounts, in their order; `read` reads one's files."""
    mounts = host_mounts(cluster)
    return tuple(
        Carried(f"{kubernetes_name(cluster.name)}-files-{number}", mount.target, read(mount))
        for number, mount in enumerate(mounts)
    )


def read(mount: Mount) -> Files:
    """Returns the files of a mount on this host.

    Raises:
        UsageError: it is too large, cannot be read, or is one that tasks write to.
    """
    if not mount.read_only:
        raise _refused(mount, "tasks write to it, which they can only to a claim")
    source = Path(mount.source)
    try:
        if not source.is_dir():
            return _small(mount, {"": source})
        found = {str(path.relative_to(source)): path for path in _files(source)}
        return _small(mount, found)
    except OSError as error:
        raise _refused(mount, f"{error.filename} cannot be read: {error.strerror}") from error


def _files(folder: Path) -> Iterator[Path]:
    """Yields the files below a directory, without what is hidden or made by running."""
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name in SKIPPED:
            continue
        if path.is_dir():
            yield from _files(path)
        elif path.is_file():
            yield path


def _small(mount: Mount, found: Mapping[str, Path]) -> Files:
    size = 0
    for count, path in enumerate(found.values(), 1):
        size += path.stat().st_size
        if size > LARGEST or count > MOST:
            rule = f"at most {LARGEST // 1024} KiB in {MOST} files go into a ConfigMap"
            raise _refused(mount, f"it has more than nodes can be given so: {rule}")
    return {name: path.read_bytes() for name, path in found.items()}


def _refused(mount: Mount, rule: str) -> UsageError:
    target = PurePosixPath(mount.target)
    return UsageError(
        f"{mount.source}, mounted at {target}: {rule}",
        f'copy it into a claim, and write under [kubernetes]: claims = {{ "{target}" = "CLAIM" }}',
    )
