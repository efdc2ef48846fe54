"""The values that all steps of one run share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cluster_kit.host import Host
from cluster_kit.manifest.command_line import Caller
from cluster_kit.observe.logs import Followed
from cluster_kit.platforms.engine import Container, Engine
from cluster_kit.platforms.platform import Platform
from cluster_kit.resolved import Cluster
from cluster_kit.run.observer import NOBODY, Observer
from cluster_kit.run.timings import Stopwatch
from cluster_kit.show.view import View
from cluster_kit.workspace import RunDirectory, Workspace


@dataclass(frozen=True)
class Launch:
    """One run of a cluster: its plan, its host, its view, its engine and platform, its directory.

    The cluster that is started has another subnet if that of `cluster` is taken meanwhile.
    """

    host: Host
    cluster: Cluster
    workspace: Workspace
    view: View
    engine: Engine
    platform: Platform
    timings: Stopwatch
    directory: RunDirectory
    since: float
    """Unix time; older events and progress entries are not of this run."""
    id: str
    """Of this run; its containers have it as the label `labels.RUN`."""
    sizes: Mapping[str, int]
    """The bytes of each progress file that are of an earlier run in this directory."""
    keep: bool
    """Whether the containers stay after the end."""
    followed: Followed
    """What is shown of the tasks' logs."""
    observer: Observer = NOBODY
    caller: Caller = Caller.SHELL
    """In whose words advice on it names what to give next time."""

    @property
    def name(self) -> str:
        """The cluster's name."""
        return self.cluster.name

    def containers(self) -> list[Container]:
        """This run's containers, in task order; raises EngineError."""
        return self.engine.containers(self.name, self.id)

    def sidecars(self) -> list[Container]:
        """The containers of its sidecars; raises EngineError. The engine is asked if it has any."""
        return self.engine.sidecars(self.name, self.id) if self.cluster.sidecars else []
