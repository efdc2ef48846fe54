"""Who takes part in a run besides its view: a drill, which breaks what is watched."""

from __future__ import annotations

from typing import Protocol

from cluster_kit.observe.state import RunState
from cluster_kit.platforms.engine import Engine
from cluster_kit.resolved import Cluster


class Superseded(Exception):
    """The run is to be ended: another one is about to take its place."""


class Observer(Protocol):
    """Is told of a run's plan, and of each state."""

    def planned(self, cluster: Cluster) -> None:
        """Before anything is started; may raise KitError to prevent it."""
        ...

    def ready(self, engine: Engine, cluster: Cluster) -> None:
        """The image is there, and nothing is started yet; may raise KitError to prevent it."""
        ...

    def observe(self, engine: Engine, cluster: Cluster, seen: RunState) -> None:
        """The state has been observed anew. May raise Superseded, and nothing else."""
        ...


class Nobody:
    """The observer of a usual run."""

    def planned(self, cluster: Cluster) -> None:
        pass

    def ready(self, engine: Engine, cluster: Cluster) -> None:
        pass

    def observe(self, engine: Engine, cluster: Cluster, seen: RunState) -> None:
        pass


NOBODY = Nobody()
