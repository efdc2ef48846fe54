"""Reads files of this host that nodes get in a ConfigMap: a program, small data."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from cluster_kit.errors import UsageError
from cluster_kit.platforms.kubernetes.kubernetes_settings import kubernetes_name, settings_of
from cluster_kit.platforms.rendered_file import is_secret
from cluster_kit.platforms.variables import refused_secrets, secret_of
from cluster_kit.resolved import Cluster, Mount
from cluster_kit.util.masking import looks_secret_file
from cluster_kit.util.paths import seen_from
from cluster_kit.workspace import is_rendered

LARGEST = 700 * 1024
"""The maximum bytes of all files together: a ConfigMap holds 1 MiB, in which bytes are written as
base64."""
MOST = 200
DATA = "/data"
SKIPPED = frozenset(("__pycache__", "runs", "fetched", "portable", "node_modules"))
SECRET_FILES = "cluster-kit.secret-files"
"""The annotation with the files of this host from which a Secret is made, as JSON."""
Files = Mapping[str, bytes]
"""Contents by path below a mount; {"": …} if the mount is a single file."""


@dataclass(frozen=True)
class Carried:
    """A mount whose files are in the ConfigMap with this name."""

    name: str
    target: str
    files: Files


def host_mounts(cluster: Cluster) -> tuple[Mount, ...]:
    """Returns the mounts that no claim replaces, without secrets."""
    claimed = {target for target, _, _ in settings_of(cluster).claims}
    return tuple(
        mount
        for mount in cluster.all_mounts
        if not is_secret(mount) and mount.target not in claimed
    )


def secret_files(cluster: Cluster) -> dict[str, str]:
    """Returns the paths on this host of the secrets that are files, by name."""
    sources = {PurePosixPath(m.target).name: m.source for m in cluster.all_mounts if is_secret(m)}
    return dict(sorted(sources.items()))


def carried(cluster: Cluster, read: Callable[[Mount], Files]) -> tuple[Carried, ...]:
    """Returns the ConfigMaps of a cluster's mounts, in their order; `read` reads the files of a
    mount."""
    mounts = host_mounts(cluster)
    return tuple(
        Carried(f"{kubernetes_name(cluster.name)}-files-{number}", mount.target, read(mount))
        for number, mount in enumerate(mounts)
    )


def apart(cluster: Cluster) -> frozenset[Path]:
    """Returns the paths of a cluster's secrets, of its files with variables, and of its data."""
    mounts = cluster.all_mounts
    named = [one.source for one in mounts if is_secret(one) or one.target == DATA]
    named += [task.env_file for task in cluster.tasks if task.env_file]
    named += [cluster.fetch.directory] if cluster.fetch else []
    return frozenset(Path(name).resolve() for name in named)


def read(mount: Mount, apart: Collection[Path] = ()) -> Files:
    """Returns the files of a mount on this host.

    Args:
        apart: paths that are left out if they are below the mount's path.
    Raises:
        UsageError: the mount is too large, cannot be read, or is writable for tasks.
    """
    if not mount.read_only:
        raise _refused(mount, "tasks write to it, which they can only to a claim")
    source = Path(mount.source)
    try:
        if not source.is_dir():
            return _small(mount, {"": source})
        return _small(mount, _looked_through(source, apart)[0])
    except OSError as error:
        raise _refused(mount, f"{error.filename} cannot be read: {error.strerror}") from error


def left_out(mount: Mount, apart: Collection[Path]) -> list[str]:
    """Returns the paths on this host that `read` leaves out, except hidden files and files made by
    runs; directories end with a slash."""
    source = Path(mount.source)
    try:
        return _looked_through(source, apart)[1] if source.is_dir() else []
    except OSError:
        return []  # `read` reports it


def _looked_through(source: Path, apart: Collection[Path]) -> tuple[dict[str, Path], list[str]]:
    """Returns a directory's files by their names below it, and what is left out of them.

    Links are not followed if they lead out of the directory, to a left-out file or to a directory.
    """
    files, links, left = dict[str, Path](), list[Path](), list[str]()
    folders = [source]
    while folders:
        for path in sorted(folders.pop().iterdir()):
            if path.name.startswith(".") or path.name in SKIPPED:
                continue
            if path.is_symlink():
                links.append(path)
            elif path.is_dir():
                if is_rendered(path) or path.resolve() in apart:
                    left.append(f"{path}/")
                else:
                    folders.append(path)
            elif path.is_file():
                if looks_secret_file(path.name) or path.resolve() in apart:
                    left.append(str(path))
                else:
                    files[str(path.relative_to(source))] = path
    packed = {path.resolve() for path in files.values()}
    for link in links:
        if seen_from(link.parent, link.name) in packed and not looks_secret_file(link.name):
            files[str(link.relative_to(source))] = link
        else:
            left.append(str(link))
    return dict(sorted(files.items())), sorted(left)


def refuse_secrets(found: Iterable[Carried], sources: Mapping[str, str], cluster: Cluster) -> None:
    """Refuse files that contain the value of a secret.

    Args:
        sources: the path on this host of each mount, by its target.
    Raises:
        UsageError: a file contains one; the message names the file.
    """
    known = refused_secrets(cluster)
    for one in found:
        for name, content in one.files.items():
            # UTF-16 and UTF-32 write ASCII with zeros between its bytes.
            texts = {content, content.replace(b"\0", b"")}
            found_secrets = (
                secret_of(text.decode("utf-8", errors="replace"), known) for text in texts
            )
            if secret := next(filter(None, found_secrets), ""):
                path = Path(sources[one.target], name)
                raise UsageError(
                    f"{path} has the value of a secret ({secret}), and everybody who can read "
                    "ConfigMaps could read it",
                    f"take the value out of it, or move the file out of {sources[one.target]}; "
                    "tasks read a secret from /run/secrets/NAME",
                )


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
