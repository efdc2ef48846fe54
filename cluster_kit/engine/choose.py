"""How to reach what runs a cluster's containers, by the engine's name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NoReturn

from cluster_kit.engine import client
from cluster_kit.engine.interface import Engine
from cluster_kit.engine.kubernetes.client import KubernetesEngine
from cluster_kit.engine.swarm.client import SwarmEngine
from cluster_kit.errors import UsageError
from cluster_kit.parts import EngineName


def not_run_by_the_kit(name: str = "NAME") -> UsageError:
    """The error of every verb that would have to start a job of Slurm, or look into one."""
    return UsageError(
        'engine = "slurm": the kit writes a script for Slurm and does not run it',
        f"`cluster-kit render {name} --engine slurm`, then `sbatch compose/{name}/sbatch.sh`; "
        "`squeue --me` shows the job, `scancel` ends it",
    )


def _of_slurm(_: str) -> NoReturn:
    raise not_run_by_the_kit()


ENGINES: Mapping[EngineName, Callable[[str], Engine]] = MappingProxyType(
    {
        "compose": lambda _: client.connect(),
        "swarm": lambda _: SwarmEngine(),
        "kubernetes": KubernetesEngine,
        "slurm": _of_slurm,
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
