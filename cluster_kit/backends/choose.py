"""The one table of backends: a further engine is one entry here, and its name in `EngineName`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NoReturn

from cluster_kit.backends.compose.backend import Compose
from cluster_kit.backends.interface import Backend
from cluster_kit.backends.kubernetes.backend import Kubernetes
from cluster_kit.backends.slurm.backend import Slurm, not_run_by_the_kit
from cluster_kit.backends.swarm.backend import Swarm
from cluster_kit.engine import client
from cluster_kit.engine.interface import Engine
from cluster_kit.engine.kubernetes.client import KubernetesEngine
from cluster_kit.engine.swarm.client import SwarmEngine
from cluster_kit.parts import EngineName


@dataclass(frozen=True)
class Entry:
    """What starts the containers, and how to reach what runs them."""

    backend: Callable[[], Backend]
    connect: Callable[[str], Engine]
    """Is given a namespace, which only Kubernetes has; "" for its usual one."""


def _of_slurm() -> NoReturn:
    raise not_run_by_the_kit()


BACKENDS: Mapping[EngineName, Entry] = MappingProxyType(
    {
        "compose": Entry(Compose, lambda _: client.connect()),
        "swarm": Entry(Swarm, lambda _: SwarmEngine()),
        "kubernetes": Entry(Kubernetes, KubernetesEngine),
        "slurm": Entry(Slurm, lambda _: _of_slurm()),
    }
)


def backend(engine: EngineName) -> Backend:
    """The backend that starts a cluster whose manifest names this engine."""
    return BACKENDS[engine].backend()


def connect(engine: EngineName, namespace: str = "") -> Engine:
    """A connection to what runs its containers.

    Raises:
        HostError: nothing of that kind answers.
    """
    return BACKENDS[engine].connect(namespace)
