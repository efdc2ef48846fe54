"""What starts a cluster's containers: the protocol of a platform, and its values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from cluster_kit.errors import EngineError
from cluster_kit.host import Host
from cluster_kit.resolved import Cluster
from cluster_kit.workspace import Workspace


class SubnetTaken(EngineError):
    """The subnet was taken between the plan and the start; a new plan finds another."""


class ImageMissing(EngineError):
    """The image was removed between the plan and the start."""


@dataclass(frozen=True)
class Tool:
    """The program that a platform calls, as `doctor` shows it.

    `version` is None if the program was not found; `absent` is the message for that, and `install`
    its hint.
    """

    name: str
    title: str
    version: tuple[int, ...] | None
    minimum: tuple[int, ...]
    absent: str
    install: str


@dataclass(frozen=True)
class Build:
    """How an image is built: its folder relative to the file, its Dockerfile in it, arguments."""

    context: str
    dockerfile: str
    arguments: Mapping[str, str]


class Platform(Protocol):
    """Renders a cluster as a file of its own format, and starts the containers of that file.

    The containers have the labels of `labels`; an `Engine` watches and removes them.
    """

    def file(self, workspace: Workspace, name: str) -> Path:
        """The path of the file of the cluster with this name; `write` writes it."""

    def tool(self, host: Host) -> Tool:
        """The program that the platform needs, as found on this host."""

    def render(self, cluster: Cluster) -> str:
        """The text of a cluster's file: the same cluster gives the same text.

        Its containers are made from `container_specs`, its network from the cluster.
        """

    def render_portable(self, cluster: Cluster, build: Build | None) -> str:
        """The text of a file that runs on any host, as it is, in a copy of the workspace.

        Args:
            cluster: planned for no host in particular, its mounts relative to the file.
            build: how the image is built from the workspace, None if its source is not there.
        """

    def write_portable(self, workspace: Workspace, cluster: Cluster, text: str) -> Path:
        """Write such a file, and what else has to be committed with it; returns its path."""

    def changed(self, old: str, new: str) -> tuple[str, ...]:
        """Which sources differ between two texts of a cluster's file: manifest, kit, host.

        () if all are the same; a text without sources was written by another version of the kit.
        """

    def stale_beside(self, file: Path, cluster: Cluster) -> str:
        """How what lies beside a cluster's file is not as `write` would write it, "" if it is."""

    def left_out(self, cluster: Cluster) -> list[str]:
        """Paths of this host below mounts that its tasks do not get, since they look like secrets
        or lead elsewhere; directories end with a slash."""

    def write(self, workspace: Workspace, cluster: Cluster, text: str) -> Path:
        """Write a cluster's file into the workspace and return its path."""

    def merges(self, file: Path) -> Path | None:
        """A person's own file that `up` merges into a cluster's file; None if there is none."""

    def up(self, host: Host, file: Path, output: Path, run: str) -> None:
        """Create and start every container, and return without waiting for them to end.

        Containers of another run are left as they are.

        Args:
            output: the host's directory that is mounted at /output in every container.
            run: the value of the label `labels.RUN` of containers and network.
        Raises:
            UsageError: a person's own file (`merges`) is invalid, or changes what the kit needs.
            SubnetTaken: the subnet is in use by now.
            ImageMissing: the image is no longer there.
            EngineError: the start failed otherwise; some containers may have started.
        """


State = Literal["ok", "warn", "fail"]


@dataclass(frozen=True)
class Check:
    """The name of the check, its result, what was found, and the hint ("" if none is needed)."""

    name: str
    state: State
    found: str
    hint: str = ""

    def as_json(self) -> dict[str, Any]:
        """The line as `doctor --json` prints it, where the hint is called `cure`."""
        return {"name": self.name, "state": self.state, "found": self.found, "cure": self.hint}
