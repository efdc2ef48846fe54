"""Rules: where a manifest's own mounts may be in a container, and who has them. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from cluster_kit.manifest.mounts import MountTable, PlainMount
from cluster_kit.manifest.schema import Manifest
from cluster_kit.problem import Problem
from cluster_kit.roles import ROLES
from cluster_kit.util.nearest import proposal
from cluster_kit.util.toml_text import to_toml

OWN = tuple(
    map(
        PurePosixPath,
        ("/program", "/data", "/output", "/run/secrets", "/opt/trainer", "/opt/venv",
         "/opt/datasets", "/proc", "/sys", "/dev"),
    )
)  # fmt: skip
"""Directories that the kit, its image or the kernel fills; nothing is mounted in them."""
WHOLE = tuple(
    map(
        PurePosixPath,
        ("/bin", "/etc", "/etc/hostname", "/etc/hosts", "/etc/resolv.conf", "/lib", "/lib64",
         "/opt", "/run", "/sbin", "/tmp", "/usr", "/usr/bin", "/usr/lib", "/usr/local", "/var"),
    )
)  # fmt: skip
"""What a container cannot be without; something may be mounted inside of them."""
EXAMPLE = 'for example `target = "/cache"`'


def check_mounts(manifest: Manifest) -> Iterator[Problem]:
    """Yields targets that cannot be mounted at, and roles that do not exist."""
    for place, mount in placed(manifest):
        yield from check_target(place, mount)
        yield from check_roles(f"{place}.roles", mount.roles)
    yield from check_together(tuple(placed(manifest)))


def check_roles(place: str, roles: Iterable[str]) -> Iterator[Problem]:
    """Yields roles that do not exist."""
    for role in roles:
        if role not in ROLES:
            cure = proposal(role, list(ROLES)) or f"roles: {', '.join(ROLES)}"
            yield Problem(place, to_toml(role), "no such role", cure)


def placed(manifest: Manifest) -> Iterator[tuple[str, MountTable]]:
    """Yields the manifest's mounts, each with its key (`mount.0`)."""
    yield from ((f"mount.{number}", mount) for number, mount in enumerate(manifest.mount))


def check_absolute(place: str, mount: PlainMount) -> Iterator[Problem]:
    """Yields a target that is not a whole path."""
    if not re.match(r"/(?!/)", mount.target) or mount.target != posixpath.normpath(mount.target):
        rule = "must be an absolute path, without `..` and without a slash at its end"
        yield Problem(f"{place}.target", to_toml(mount.target), rule, EXAMPLE)


def check_target(place: str, mount: MountTable) -> Iterator[Problem]:
    """Yields why nothing can be mounted at a target."""
    key, value, target = f"{place}.target", to_toml(mount.target), PurePosixPath(mount.target)
    if faults := list(check_absolute(place, mount)):
        yield from faults
        return
    own = next((path for path in OWN if target.is_relative_to(path)), None)
    if own or target in WHOLE or any(path.is_relative_to(target) for path in OWN):
        rule = f"{own or target} in a container is the kit's own, or the system's"
        yield Problem(key, value, rule, f"choose another directory, {EXAMPLE}")


def check_together(mounts: tuple[tuple[str, MountTable], ...]) -> Iterator[Problem]:
    """Yields targets that are taken, or inside of another mount, for the same role."""
    for number, (place, mount) in enumerate(mounts):
        for before, other in mounts[:number]:
            if not _share_a_role(mount, other):
                continue
            key, value = f"{place}.target", to_toml(mount.target)
            if mount.target == other.target:
                rule = f"{before} is mounted there"
                yield Problem(key, value, rule, "choose another directory, or other `roles`")
            elif _nested(mount.target, other.target):
                rule = f"one of them would be inside of the other: {before} is at {other.target}"
                yield Problem(key, value, rule, "choose directories beside each other")


def _share_a_role(one: MountTable, other: MountTable) -> bool:
    return not (one.roles and other.roles) or not set(one.roles).isdisjoint(other.roles)


def _nested(one: str, other: str) -> bool:
    first, second = PurePosixPath(one), PurePosixPath(other)
    return first.is_relative_to(second) or second.is_relative_to(first)
