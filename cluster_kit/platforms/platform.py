"""Defines what a platform is (where a cluster runs), and plans a manifest for its platform."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cluster_kit.errors import EngineError, UsageError
from cluster_kit.facts import HostFacts
from cluster_kit.host import Host
from cluster_kit.manifest.command_line import Caller
from cluster_kit.platform_table import PLATFORMS
from cluster_kit.platforms.engine import Engine
from cluster_kit.platforms.rendered_file import Build, body, is_edited
from cluster_kit.resolved import Cluster, Task
from cluster_kit.workspace import Workspace

if TYPE_CHECKING:  # building the manifest's models takes long, and many commands read no manifest
    from cluster_kit.errors import Problem
    from cluster_kit.manifest.field_types import Strict
    from cluster_kit.manifest.load import Loaded
    from cluster_kit.manifest.schema import Manifest
    from cluster_kit.plan.gpus import GpuGrant, GpuRequest
    from cluster_kit.plan.plan import OwnImages
    from cluster_kit.programs.resolve import Inputs


class SubnetTaken(EngineError):
    """The subnet was taken between the plan and the start; a new plan finds another."""


class ImageMissing(EngineError):
    """The image was removed between the plan and the start."""


class SidecarUnready(EngineError):
    """The `container` of a sidecar was not ready while tasks waited for its command `ready`.

    `ended` is its exit code; None if it still runs.
    """

    def __init__(self, message: str, hint: str, container: str, ended: int | None) -> None:
        super().__init__(message, hint)
        self.container = container
        self.ended = ended


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


class Platform(ABC):
    """Where a cluster runs: which keys it supports, its file, its start, its engine.

    The methods here are the defaults. The containers have the labels of `labels`; the platform's
    `Engine` watches and removes them.
    """

    name: str
    """The value of the manifest's `engine`; of its table, too, if it has one."""
    title: str
    """Its name in sentences such as "runs on ..."."""
    meaning: str
    """Its description among the values of `engine` in the manifest's reference."""
    one_host: bool = False
    """All tasks run on this host: the plan uses the host's facts, and each task has a fixed
    address."""
    by_docker: bool = True
    """Whether this host's Docker engine runs the cluster, or manages the nodes that do."""
    host_network: bool = False
    """Tasks use the network of their nodes."""
    pulls_images: bool = False
    """Nodes pull images from a registry, and report if they cannot."""
    output_is_late: bool = False
    """The tasks' output reaches this host with a delay that is not the tasks' fault."""
    takes_tasks_away: str = ""
    """A hint for tasks that the platform itself has ended, such as by eviction: how to make this
    less likely; "" if the platform never ends tasks."""

    @property
    def file_name(self) -> str:
        """The name of the file of each of its clusters."""
        return PLATFORMS[self.name].files[0]

    # Which parts of a manifest it supports

    def table(self) -> tuple[type[Strict], str] | None:
        """The model of its table in a manifest and its description, None if it has none."""
        return None

    @abstractmethod
    def refusals(self, manifest: Manifest) -> Iterator[Problem]:
        """Yields problems: keys of a manifest that it does not support, and invalid values in its
        table."""

    def facts(self, manifest: Manifest, facts: HostFacts) -> HostFacts:
        """The facts to plan with; facts that are only true for this host are removed if tasks run
        elsewhere."""
        from cluster_kit.plan.tasks import of_other_nodes

        return facts if self.one_host else of_other_nodes(facts)

    def grants(
        self, manifest: Manifest, request: GpuRequest, facts: HostFacts
    ) -> tuple[dict[str, GpuGrant], list[Problem]]:
        """The GPUs of each task that gets some, by its name, and the problems of the request."""
        from cluster_kit.plan.gpus import assign, of_nodes

        return assign(manifest.name, request, facts) if self.one_host else of_nodes(request)

    def tasks(self, manifest: Manifest, tasks: tuple[Task, ...]) -> tuple[Task, ...]:
        """The planned tasks with the settings that only this platform gives them."""
        return tasks

    def image_name(self, manifest: Manifest, image: str) -> str:
        """The name by which tasks use an image that has this name on this host."""
        return image

    def local_name(self, manifest: Manifest, image: str) -> str:
        """The name on this host of an image that tasks are started from."""
        return image

    def settings(self, manifest: Manifest) -> Mapping[str, Any]:
        """The values of the platform's table that a cluster keeps, as plain data for
        `Cluster.settings`."""
        return {}

    # Its file

    def file(self, workspace: Workspace, name: str) -> Path:
        """The path of the file of the cluster with this name; `write` writes it."""
        return workspace.generated(name, self.file_name)

    @abstractmethod
    def render(self, cluster: Cluster) -> str:
        """The text of a cluster's file: the same cluster gives the same text.

        Its containers are made from `task_containers`, its network from the cluster.
        """

    @property
    @abstractmethod
    def not_portable(self) -> UsageError:
        """The reason why its file runs nowhere else, and what to do instead."""

    def render_portable(self, cluster: Cluster, build: Build | None) -> str:
        """The text of a file that runs on any host, as it is, in a copy of the workspace.

        Args:
            cluster: planned for no host in particular, its mounts relative to the file.
            build: how the image is built from the workspace, None if its source is not there.
        Raises:
            UsageError: the platform has no such file.
        """
        raise self.not_portable

    def write_portable(self, workspace: Workspace, cluster: Cluster, text: str) -> Path:
        """Write such a file, and other files to commit with it; returns its path."""
        raise self.not_portable

    def changed(self, old: str, new: str) -> tuple[str, ...]:
        """Which sources differ between two texts of a cluster's file: manifest, kit, host.

        () if all are the same; a text without sources was written by another version of the kit.
        """
        return changed(old, new)

    def stale_beside(self, file: Path, cluster: Cluster) -> str:
        """A text about generated files that differ from what `write` would write; "" if none
        differs."""
        return ""

    def left_out(self, cluster: Cluster) -> list[str]:
        """Paths of this host below mounts that its tasks do not get, since they look like secrets
        or lead elsewhere; directories end with a slash."""
        return []

    @abstractmethod
    def write(self, workspace: Workspace, cluster: Cluster, text: str) -> Path:
        """Write a cluster's file into the workspace and return its path."""

    def merges(self, file: Path) -> Path | None:
        """A user's file that `up` merges into a cluster's file; None if there is none."""
        return None

    # Its run

    def not_run(self, name: str) -> UsageError | None:
        """The reason why the kit only renders files for this platform, and how to start them; None
        if the kit starts clusters there."""
        return None

    @abstractmethod
    def engine(self, settings: Mapping[str, Any] | None = None) -> Engine:
        """A connection to the engine that runs its containers.

        Args:
            settings: `Cluster.settings` of a particular cluster, if there is one.
        Raises:
            HostError: no engine of this platform answers.
            UsageError: the kit does not start clusters there.
        """

    def is_beside(self, engine: Engine) -> bool:
        """Whether this host's engine gives access to it, so that commands search it by default."""
        return False

    @abstractmethod
    def up(self, host: Host, cluster: Cluster, file: Path, output: Path, run: str) -> Sequence[str]:
        """Create and start every container, and return without waiting for them to end.

        Containers of another run are left as they are.

        Args:
            file: the cluster's file, as `write` wrote it.
            output: the host's directory that is mounted at /output in every container.
            run: the value of the label `labels.RUN` of containers and network.
        Returns:
            Warnings about the user's file (`merges`).
        Raises:
            UsageError: the user's file (`merges`) is invalid, or changes settings that the kit
                needs.
            SubnetTaken: another network has taken the subnet.
            ImageMissing: the image no longer exists.
            EngineError: the start failed for another reason; some containers may have started.
        """

    # Texts for users

    @abstractmethod
    def tool(self, host: Host) -> Tool:
        """The program that the platform needs, as found on this host."""

    def checks(self, host: Host, cluster: Cluster | None) -> list[Check]:
        """Checks whether it can run clusters, or this cluster: lines of `doctor`, some of which
        `up` needs."""
        return []

    def trials(self, cluster: Cluster | None, runs: Path | None) -> list[Check]:
        """Further lines of `doctor`, from slower trials; `runs` is the directory of its runs."""
        return []

    def place(self, cluster: Cluster) -> str:
        """Where a cluster runs, in a few words."""
        return str(cluster.subnet)

    @property
    def engine_title(self) -> str:
        """The engine's name in a sentence."""
        return "the Docker engine"

    def needs_image(self, cluster: Cluster) -> bool:
        """Whether its tasks run in an image."""
        return True

    def after_build(self, cluster: Cluster, local: str, file: str) -> str:
        """Called after the image, which has the name `local` on this host, was built."""
        return "`docker compose up` there"


WRITER = re.compile(r"^# cluster-kit (\S+) wrote this ", re.MULTILINE)
SOURCES = re.compile(r"^# made of: manifest (\w+), kit (\w+), (host .*|any host)$", re.MULTILINE)


def changed(old: str, new: str) -> tuple[str, ...]:
    """Returns which of manifest, kit and host differ between two files, and which values of the
    host.

    Another version of the kit may make other hashes of the same manifest.
    """
    before, after = SOURCES.search(old), SOURCES.search(new)
    if before is None or after is None or WRITER.findall(old)[:1] != WRITER.findall(new)[:1]:
        return ("kit",)
    if is_edited(old) is None and body(old) == body(new):
        return ("kit",)  # one that wrote no hash of the content
    found = [
        name for place, name in enumerate(("manifest", "kit"), 1) if before[place] != after[place]
    ]
    values = [dict(re.findall(r"(\w+)=(\S+)", match[3])) for match in (before, after)]
    host = [name for name in values[1] if values[0].get(name) != values[1][name]]
    if host or before[3].startswith("any") != after[3].startswith("any"):
        found.append(f"host ({', '.join(host)})" if host else "host")
    return tuple(found)


PLAN = re.compile(r"^# plan (\w+)$", re.MULTILINE)
EDITED = ".edited"
"""What the name of an edited file ends with, which the kit has kept."""


def edited(old: str, new: str) -> bool:
    """Whether a cluster's file was edited by hand, and not to what the kit writes now.

    A file of an older kit has no hash of its content: there, a difference is an edit only if plan
    and kit have not changed since it was written.
    """
    if body(old) == body(new):
        return False
    known = is_edited(old)
    if known is not None:
        return known
    return PLAN.findall(old)[:1] == PLAN.findall(new)[:1] and not changed(old, new)


def keep_edited(file: Path, text: str) -> Path | None:
    """Keep a cluster's file that was edited by hand, before `text` replaces it.

    `.gitignore` beside it ignores the kept file, too: it can contain values of the environment.

    Returns the path that the file has now; None if there is none, or it was not edited.
    Raises:
        OSError: it cannot be renamed.
    """
    old = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
    if not edited(old, text):
        return None
    names = (f"{file.name}{EDITED}{number or ''}" for number in count())
    kept = next(path for name in names if not (path := file.with_name(name)).exists())
    ignored = file.with_name(".gitignore")
    if ignored.exists() and f"*{EDITED}" not in ignored.read_text(errors="replace"):
        with ignored.open("a") as lines:
            lines.write(f"*{EDITED}*\n")
    file.rename(kept)
    return kept


def kept_sentence(file: str, kept: str) -> str:
    """The message about a kept file."""
    return f"{file} had been edited by hand: it is {kept} now, and a new one was written"


@cache
def platform_of(engine: str) -> Platform:
    """The platform of a manifest with this `engine`."""
    module, _, name = PLATFORMS[engine].platform.rpartition(".")
    platform: Platform = getattr(import_module(module), name)()
    return platform


def all_platforms() -> Iterator[Platform]:
    """Yields every platform, the default first."""
    return map(platform_of, PLATFORMS)


def connect(engine: str, settings: Mapping[str, Any] | None = None) -> Engine:
    """A connection to a platform's engine; see `Platform.engine`."""
    return platform_of(engine).engine(settings)


@cache
def manifest_model() -> type[Manifest]:
    """The model of a whole manifest: the words of `engine`, and the tables of platforms."""
    from cluster_kit.manifest import schema

    *others, last = (platform.meaning for platform in all_platforms())
    described = f"What runs the containers: {', '.join(others)}, or {last}"
    tables = {one.name: table for one in all_platforms() if (table := one.table())}
    return schema.with_platforms(tuple(PLATFORMS), described, tables)


def json_schema() -> dict[str, Any]:
    """The manifest's JSON Schema (draft 2020-12), for editors."""
    from cluster_kit.manifest import schema

    return schema.json_schema(manifest_model())


def load(
    path: Path,
    overrides: Mapping[str, Any] | None = None,
    root: Path | None = None,
    by_set: frozenset[str] = frozenset(),
    caller: Caller = Caller.SHELL,
) -> Loaded:
    """The manifest in a file, as `manifest.load.load` reads it, for any platform.

    Raises:
        ManifestError: the file cannot be read, or is not valid TOML.
    """
    from cluster_kit.manifest import load as loading

    return loading.load(path, overrides, root, by_set, caller, model=manifest_model())


def plan(loaded: Loaded, inputs: Inputs, facts: HostFacts, images: OwnImages) -> Cluster:
    """The cluster of a manifest, as `plan.plan.plan` makes it, for the platform that it names.

    Raises:
        ManifestError: the manifest is invalid; the error has every problem, in its order.
    """
    from cluster_kit.plan import plan as planning

    platform = platform_of(loaded.manifest.engine)
    return planning.plan(loaded, inputs, facts, images, platform)
