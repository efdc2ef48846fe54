"""What a run needs of a backend, whatever starts the containers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from cluster_kit.cluster import Cluster
from cluster_kit.errors import EngineError
from cluster_kit.workspace import Workspace


class SubnetTaken(EngineError):
    """The subnet was taken between the plan and the start; a new plan finds another."""


@dataclass(frozen=True)
class Tool:
    """The program by which a backend works, as `doctor` shows it.

    `version` is None if the program was not found; `absent` says so to people, and `install` what
    to do about it.
    """

    name: str
    title: str
    version: tuple[int, ...] | None
    minimum: tuple[int, ...]
    absent: str
    install: str


class Backend(Protocol):
    """Turns a cluster into a file of its own kind, and starts what the file says.

    The containers carry the labels of `labels`, and are watched and removed by `engine`.
    """

    def tool(self) -> Tool:
        """The program that it needs, as found on this host."""

    def render(self, cluster: Cluster) -> str:
        """The text of a cluster's file: its containers as `container_specs` says, its network from
        the cluster. The same cluster gives the same text."""

    def write(self, workspace: Workspace, cluster: Cluster, text: str) -> Path:
        """Write a cluster's file to its place in the workspace; returns the path."""

    def up(self, file: Path, output: Path) -> None:
        """Create and start every container, and return without waiting for them to end.

        Args:
            output: the host's directory that every container sees as /output.
        Raises:
            SubnetTaken: the subnet is in use after all.
            EngineError: anything else that was refused; some containers may have started.
        """
