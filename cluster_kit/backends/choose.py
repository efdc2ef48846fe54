"""The one table of backends: a further engine is one entry here and one in `engine.choose`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from cluster_kit.backends.compose.backend import Compose
from cluster_kit.backends.interface import Backend
from cluster_kit.backends.kubernetes.backend import Kubernetes
from cluster_kit.backends.slurm.backend import Slurm
from cluster_kit.backends.swarm.backend import Swarm
from cluster_kit.parts import EngineName

BACKENDS: Mapping[EngineName, Callable[[], Backend]] = MappingProxyType(
    {"compose": Compose, "swarm": Swarm, "kubernetes": Kubernetes, "slurm": Slurm}
)
"""What starts the containers; `engine.choose` has how to reach what runs them."""


def backend(engine: EngineName) -> Backend:
    """The backend that starts a cluster whose manifest names this engine."""
    return BACKENDS[engine]()
