"""What a compose file says of itself in its first lines. Pure."""

from __future__ import annotations

from cluster_kit.backends.interface import Build
from cluster_kit.cluster import Cluster

HERE_ONLY = "It is for this host and this user; with --portable the command makes one for any."


def own_lines(cluster: Cluster, build: Build | None) -> list[str]:
    """Returns the lines: where it runs, who gets the results, how its image comes."""
    own = _portable(cluster, build) if cluster.origin.portable else [HERE_ONLY]
    return [*own, *_beside(cluster)]


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
