"""The table of platforms: a further one is one entry here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from cluster_kit.parts import EngineName
from cluster_kit.platforms.compose.compose_platform import Compose
from cluster_kit.platforms.docker import docker_engine
from cluster_kit.platforms.engine import Engine
from cluster_kit.platforms.kubernetes.kubernetes_engine import KubernetesEngine
from cluster_kit.platforms.kubernetes.kubernetes_platform import Kubernetes
from cluster_kit.platforms.platform import Platform
from cluster_kit.platforms.slurm.slurm_platform import Slurm, no_engine_of_slurm
from cluster_kit.platforms.swarm.swarm_engine import SwarmEngine
from cluster_kit.platforms.swarm.swarm_platform import Swarm

PLATFORMS: Mapping[EngineName, Callable[[], Platform]] = MappingProxyType(
    {"compose": Compose, "swarm": Swarm, "kubernetes": Kubernetes, "slurm": Slurm}
)
"""What starts the containers; `ENGINES` has how to reach what runs them."""


def platform_of(engine: EngineName) -> Platform:
    """The platform on which a cluster runs whose manifest names this engine."""
    return PLATFORMS[engine]()


ENGINES: Mapping[EngineName, Callable[[str], Engine]] = MappingProxyType(
    {
        "compose": lambda _: docker_engine.connect(),
        "swarm": lambda _: SwarmEngine(),
        "kubernetes": KubernetesEngine,
        "slurm": no_engine_of_slurm,
    }
)
"""Each is given a namespace, which only Kubernetes has; "" for its usual one."""


def connect(engine: EngineName, namespace: str = "") -> Engine:
    """A connection to what runs its containers.

    Raises:
        HostError: nothing of that kind answers.
        UsageError: the kit starts nothing there.
    """
    return ENGINES[engine](namespace)
