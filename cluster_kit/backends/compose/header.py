"""The comment at the top of a compose file, and what it tells of a file that is stale. Pure."""

from __future__ import annotations

import re

from cluster_kit.backends.compose.yaml import comment
from cluster_kit.backends.interface import Build
from cluster_kit.cluster import Cluster
from cluster_kit.version import __version__

HERE_ONLY = "It is for this host and this user; with --portable the command makes one for any."
SOURCES = re.compile(r"^# made of: manifest (\w+), kit (\w+), (host .*|any host)$", re.MULTILINE)


def header(cluster: Cluster, plan: str, build: Build | None) -> list[str]:
    """Returns the lines: who wrote it, how it is written anew, where it runs, and from what."""
    origin = cluster.origin
    own = _portable(cluster, build) if origin.portable else [HERE_ONLY]
    host = " ".join(f"{name}={value}" for name, value in origin.host)
    lines = [
        f"cluster-kit {__version__} wrote this from {cluster.source}. Do not edit:",
        f"change the manifest, then run `{origin.command}`.",
        f"plan {plan}",
        *own,
        *_beside(cluster),
        f"made of: manifest {origin.manifest}, kit {origin.kit}, "
        + ("any host" if origin.portable else f"host {host}"),
    ]
    return [comment(line) for line in lines]


def _beside(cluster: Cluster) -> list[str]:
    """What plain Compose does about sidecars, which do not end by themselves."""
    names = ", ".join(one.name for one in cluster.sidecars)
    if not names:
        return []
    return [
        "`docker compose up` ends when the tasks have ended. It does not end the sidecars",
        f"({names}): `docker compose down` does.",
    ]


def _portable(cluster: Cluster, build: Build | None) -> list[str]:
    lines = [
        "It runs on any host: `docker compose up` in this directory of a copy of the whole folder.",
        "Results, in output/, belong to whoever owns that directory, or to the variables UID, GID.",
    ]
    if cluster.dockerfile is not None:
        return [
            *lines,
            "The first `docker compose up` builds the image, which needs the kit's in it.",
        ]
    if cluster.variant is None:
        return lines
    by_kit = f"cluster-kit image build --variant {cluster.variant}"
    if cluster.requirements or cluster.tensorflow:
        by_kit = f"cluster-kit image build {cluster.source.removesuffix('.toml')}"
    if build is None:
        return [*lines, f"The image has to be there: `{by_kit}` builds it."]
    return [
        *lines,
        "The first `docker compose up` builds the image, on Python's own from a registry or on",
        f"CLUSTER_KIT_BASE; `{by_kit}` does so without a registry, too.",
    ]


def changed(old: str, new: str) -> tuple[str, ...]:
    """Returns which of manifest, kit and host differ between two files, and which of its values."""
    before, after = SOURCES.search(old), SOURCES.search(new)
    if before is None or after is None:
        return ("kit",)
    found = [
        name for place, name in enumerate(("manifest", "kit"), 1) if before[place] != after[place]
    ]
    values = [dict(re.findall(r"(\w+)=(\S+)", match[3])) for match in (before, after)]
    host = [name for name in values[1] if values[0].get(name) != values[1][name]]
    if host or before[3].startswith("any") != after[3].startswith("any"):
        found.append(f"host ({', '.join(host)})" if host else "host")
    return tuple(found)
