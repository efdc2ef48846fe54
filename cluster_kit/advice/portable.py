"""What a portable file cannot do as it does on one host. Pure."""

from __future__ import annotations

from cluster_kit.advice.hint import Hint
from cluster_kit.cluster import Cluster
from cluster_kit.manifest.schema import Manifest
from cluster_kit.programs.data import IN_CONTAINER


def portable_hints(manifest: Manifest, cluster: Cluster) -> list[Hint]:
    """The warnings about `gpus = "auto"`, and about a directory that each host must have."""
    hints = []
    if manifest.gpus == "auto":
        hints.append(
            Hint(
                "gpus",
                '"auto" in a portable file: the workers train on the CPU',
                "which GPUs a host has is only known there",
                'list indexes, e.g. `gpus = ["0", "1"]`, or render on that host without --portable',
            )
        )
    beside = (mount for one in cluster.sidecars for mount in one.mounts)
    hints += [
        Hint(
            "data" if mount.target == IN_CONTAINER else "mount",
            f"{mount.source} is an absolute path",
            "every host that runs the file must have it",
            "move the data into the folder of the project",
        )
        for mount in (*cluster.all_mounts, *beside)
        if mount.source.startswith("/")
    ]
    return hints
