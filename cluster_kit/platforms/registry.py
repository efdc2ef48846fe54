"""The table of platforms: a further one is one row here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Any

from cluster_kit.platforms.engine import Engine
from cluster_kit.platforms.platform import Platform

PLATFORMS: Mapping[str, str] = MappingProxyType(
    {
        "compose": "cluster_kit.platforms.compose.compose_platform.Compose",
        "swarm": "cluster_kit.platforms.swarm.swarm_platform.Swarm",
        "kubernetes": "cluster_kit.platforms.kubernetes.kubernetes_platform.Kubernetes",
        "slurm": "cluster_kit.platforms.slurm.slurm_platform.Slurm",
    }
)
"""The class of each platform, which is imported when it is used, by the manifest's `engine`."""
DEFAULT = next(iter(PLATFORMS))
"""That of a manifest that names none, and of what this host is asked without a manifest."""


@cache
def platform_of(engine: str) -> Platform:
    """The platform on which a cluster runs whose manifest names this engine."""
    module, _, name = PLATFORMS[engine].rpartition(".")
    platform: Platform = getattr(import_module(module), name)()
    return platform


def all_platforms() -> Iterator[Platform]:
    """Yields every platform, the default first."""
    return map(platform_of, PLATFORMS)


def connect(engine: str, settings: Mapping[str, Any] | None = None) -> Engine:
    """A connection to what runs a platform's containers; see `Platform.engine`."""
    return platform_of(engine).engine(settings)
