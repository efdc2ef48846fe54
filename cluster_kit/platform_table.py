"""The platforms that the kit has, one row each; everything else asks this table for their names."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Row(NamedTuple):
    """A platform: its class, which is imported when it is used, and the names of its files.

    The first file describes a cluster; the others are in the same directory.
    """

    platform: str
    files: tuple[str, ...]


PLATFORMS: Mapping[str, Row] = MappingProxyType(
    {
        "compose": Row(
            "cluster_kit.platforms.compose.compose_platform.Compose",
            ("compose.yaml", "secrets.yaml"),
        ),
        "swarm": Row(
            "cluster_kit.platforms.swarm.swarm_platform.Swarm",
            ("stack.yaml", "cluster.json"),
        ),
        "kubernetes": Row(
            "cluster_kit.platforms.kubernetes.kubernetes_platform.Kubernetes",
            ("kubernetes.yaml",),
        ),
        "slurm": Row(
            "cluster_kit.platforms.slurm.slurm_platform.Slurm",
            ("sbatch.sh", "sbatch.json"),
        ),
    }
)
"""The platforms by the manifest's `engine`."""
DEFAULT = next(iter(PLATFORMS))
"""The platform of a manifest without `engine`, and of commands without a manifest."""
DEFAULT_FILE = PLATFORMS[DEFAULT].files[0]
