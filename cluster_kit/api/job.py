"""The Python class for a manifest: plan it, render it, run it to its end, or keep it up for a
block."""

from __future__ import annotations

import contextlib
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cluster_kit import this_host
from cluster_kit.advice.of_program import fit
from cluster_kit.api import host_chief
from cluster_kit.api.running import EventView, OnEvent, RunningCluster, nothing
from cluster_kit.errors import ManifestError, Problem, UsageError
from cluster_kit.host import Host
from cluster_kit.manifest.command_line import Caller, with_another_program
from cluster_kit.manifest.load import Loaded, find
from cluster_kit.observe import user_requests
from cluster_kit.plan.plan import check_manifest
from cluster_kit.platform_table import DEFAULT
from cluster_kit.platforms import platform as platforms
from cluster_kit.platforms.platform import platform_of
from cluster_kit.programs import resolve
from cluster_kit.programs.catalog import DATA_SETS, PROGRAMS
from cluster_kit.resolved import Cluster
from cluster_kit.run.launch import launch, launch_detached
from cluster_kit.run.outcome import Outcome
from cluster_kit.run.prepare import Prepared, prepare, refuse_unlocked
from cluster_kit.run.request import Request
from cluster_kit.run.run import Keep
from cluster_kit.run.take_down import take_down
from cluster_kit.run.verdict import Reason
from cluster_kit.util.paths import seen_from
from cluster_kit.util.toml_text import to_toml
from cluster_kit.workspace import Workspace, here

AUTO = "auto"
PATHS: Mapping[str, tuple[str, ...]] = {
    "program": tuple(PROGRAMS),
    "data": tuple(DATA_SETS),
    "requirements": (),
    "build": (),
}
"""Keys whose values are paths, each with the values that are names instead."""


@dataclass(frozen=True)
class Job:
    """A manifest with its overrides. Nothing is started before `run` or `up`.

    `manifest` is its path; runs and generated files go below `root`.
    """

    manifest: Path
    overrides: Mapping[str, Any]
    root: Path
    host: Host = field(default_factory=lambda: this_host.this_host(), repr=False, compare=False)

    @property
    def name(self) -> str:
        """The cluster's name; raises ManifestError if the file is invalid by now."""
        return str(self._loaded.manifest.name)

    @property
    def fixed_subnet(self) -> str:
        """The subnet that the manifest states; "" if a free one is chosen at the start."""
        subnet = str(self._loaded.manifest.subnet)
        return "" if subnet == AUTO else subnet

    def plan(self) -> Cluster:
        """The cluster on this host: `plan().tasks` have name, role, index, ip and GPUs.

        Raises:
            ManifestError: the manifest asks for a cluster that is not possible; it has every
                problem.
        """
        return self._prepared().cluster

    def render(self) -> str:
        """The text of the cluster's file for its platform; nothing is written.

        Raises:
            ManifestError: see `plan`.
            UsageError: the packages of another TensorFlow are not resolved yet.
        """
        prepared = self._prepared()
        refuse_unlocked(prepared)
        return platform_of(prepared.cluster.engine).render(prepared.cluster)

    def _prepared(self) -> Prepared:
        return prepare(self.host, self._request, Workspace(self.root), self.host.engine_or_none())

    def run(
        self, on_event: OnEvent | None = None, *, keep: Keep = False, resume: bool = False
    ) -> Outcome:
        """Run the cluster to its end, and return its outcome, whether it succeeded or not.

        On Ctrl-C it is stopped, saved and removed, and KeyboardInterrupt is raised.

        Args:
            on_event: is called with each RunEvent.
            keep: keep the containers after the end; "failed": if the run fails.
            resume: continue in the directory of the last run.
        Raises:
            ManifestError: the manifest is invalid.
            HostError: this host cannot run it.
            EngineError: the engine failed.
        """
        view = EventView(on_event or nothing)
        outcome = launch(
            self.host, self._request, Workspace(self.root), view, keep=keep, resume=resume
        )
        if outcome.reason == Reason.INTERRUPTED:
            raise KeyboardInterrupt
        return outcome

    @contextlib.contextmanager
    def up(
        self, on_event: OnEvent | None = None, *, resume: bool = False
    ) -> Iterator[RunningCluster]:
        """The cluster while it runs; at the end of the block it is stopped and removed.

        With a chief on this host the block begins when all servers answer, and its end is the end
        of the job. Arguments and errors are those of `run`.
        """
        platform = platform_of(self._loaded.manifest.engine)
        if not platform.one_host:
            raise UsageError(
                "a cluster that stays up is reached by its addresses, which "
                f"{platform.title} does not fix",
                f'run it with `engine="{DEFAULT}"`, or to its end with `run`',
            )
        view, workspace = EventView(on_event or nothing), Workspace(self.root)
        on_host = host_chief.is_meant(self.overrides)
        if on_host:
            with contextlib.closing(self.host.connect()) as engine:
                host_chief.refuse_without_route(engine.info())
        started = launch_detached(self.host, self._request, workspace, view, resume=resume)
        try:
            with host_chief.present(started, meant=on_host) as chief:
                running = RunningCluster(started, view, chief)
                running.begin()
                yield running
                running.end()
        finally:
            with contextlib.closing(self.host.connect()) as engine:
                take_down(self.host, engine, started.name, user_requests.LEAVE)

    @property
    def _loaded(self) -> Loaded:
        return platforms.load(self.manifest, self.overrides, caller=Caller.PYTHON)

    @property
    def _request(self) -> Request:
        return Request(str(self.manifest), self.overrides, caller=Caller.PYTHON)


def load(manifest: str | Path, *, root: str | Path | None = None, **overrides: Any) -> Job:
    """The job of a manifest, by its path or name (`"quickstart"`), with overridden keys.

    Args:
        manifest: a path, else a name in `compose/`, else one of the kit's own.
        root: the folder for runs and generated files; the current directory if it is None (or
            the kit's clone, see docs/your-project.md).
        overrides: any keys of the manifest, as `worker=3` or `deadline={"job": "5m"}`. `program`,
            `data` and `requirements` are relative to the current directory. `extra_args` are added
            to the manifest's `args`. With another `program` than the manifest's, its `args`,
            `requirements`, `tf1` and `evaluator` are left out, as on the command line.
            `chief="host"`: the caller is the chief, see `up`.
    Raises:
        UsageError: the manifest was not found.
        ManifestError: it is invalid on any host; it has every problem.
    """
    workspace = here() if root is None else Workspace(Path(root).absolute())
    meant = host_chief.overrides_of(overrides)
    values = {
        key: located(key, value, lambda path: Path(path).absolute()) for key, value in meant.items()
    }
    _refuse_text(values.get("extra_args"))
    path = find(str(manifest), workspace.manifests)
    if _is_another_program(values.get("program"), path):
        values = {**with_another_program(), **values}
    loaded = platforms.load(path, values, caller=Caller.PYTHON)
    fitted = fit(resolve.program_file(loaded.manifest, path.parent), loaded).loaded.manifest
    loaded.refuse(check_manifest(fitted, platform_of(fitted.engine)))
    return Job(path, values, workspace.root)


@contextlib.contextmanager
def cluster(
    manifest: str | Path,
    *,
    root: str | Path | None = None,
    on_event: OnEvent | None = None,
    **overrides: Any,
) -> Iterator[RunningCluster]:
    """The cluster of a manifest while it runs; at the end of the block it is stopped and removed.

    The same as `load(manifest, …).up(on_event)`: arguments are those of `load`, errors those of
    `Job.run`.
    """
    with load(manifest, root=root, **overrides).up(on_event) as running:
        yield running


def located(key: str, value: Any, find: Callable[[Path], Path]) -> Any:
    """The value of an override: a path as `find` returns it, a tuple as a list."""
    if isinstance(value, tuple):
        return list(value)
    if key == "data" and isinstance(value, Mapping):
        return {**value, **({"fetch": _found(value["fetch"], find)} if "fetch" in value else {})}
    return value if value in PATHS.get(key, (value,)) else _found(value, find)


def _found(path: Any, find: Callable[[Path], Path]) -> Any:
    is_path = isinstance(path, str | os.PathLike) and str(path)
    return str(find(Path(path).expanduser())) if is_path else path


def _refuse_text(extra_args: object) -> None:
    if isinstance(extra_args, str):
        words = to_toml(extra_args.split())
        problem = Problem(
            "extra_args", to_toml(extra_args), "must be a list", f"write `extra_args = {words}`"
        )
        raise ManifestError("the overrides", [problem])


def _is_another_program(program: object, manifest: Path) -> bool:
    """Whether this override is a program that is not the one in the manifest's file."""
    if not isinstance(program, str):
        return False
    try:
        program_key = tomllib.loads(manifest.read_text(encoding="utf-8")).get("program")
    except (OSError, ValueError):  # `load` reports it
        return False
    if program in PROGRAMS or program_key in PROGRAMS or not isinstance(program_key, str):
        return program != program_key
    return seen_from(manifest.parent, program_key).resolve() != Path(program).resolve()
