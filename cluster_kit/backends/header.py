"""The comment at the top of a generated file, and what it tells of one that is stale. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cluster_kit.backends.yaml import comment
from cluster_kit.cluster import Cluster
from cluster_kit.version import __version__

SOURCES = re.compile(r"^# made of: manifest (\w+), kit (\w+), (host .*|any host)$", re.MULTILINE)


def header(cluster: Cluster, plan: str, own: Sequence[str]) -> list[str]:
    """Returns the lines: who wrote it, how it is written anew, where it runs, and from what.

    Args:
        own: what a backend says of its file.
    """
    origin = cluster.origin
    host = " ".join(f"{name}={value}" for name, value in origin.host)
    lines = [
        f"cluster-kit {__version__} wrote this from {cluster.source}. Do not edit:",
        f"change the manifest, then run `{origin.command}`.",
        f"plan {plan}",
        *own,
        f"made of: manifest {origin.manifest}, kit {origin.kit}, "
        + ("any host" if origin.portable else f"host {host}"),
    ]
    return [comment(line) for line in lines]


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
