"""Finds the cluster that a command line names, and its engine, by asking the engines."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cluster_kit.errors import EngineError, HostError, ManifestError, UsageError
from cluster_kit.roles import ROLES
from cluster_kit.util.nearest import proposal
from cluster_kit.workspace import Workspace, names, newest_run_directory

if TYPE_CHECKING:
    from cluster_kit.host import Host
    from cluster_kit.platforms.engine import ContainerSummary, Engine
    from cluster_kit.resolved import Cluster


def reach(
    host: Host, reference: str | None, workspace: Workspace, chosen: str | None = None
) -> Engine:
    """The engine of the cluster that a command line names.

    It is this host's engine, one that this host manages, or the engine of another platform that
    runs the cluster. If no engine has the cluster, this host's is returned. If no cluster is named
    and only one engine has clusters, that engine is returned.

    Args:
        reference: the cluster's name or its manifest's path, None or "" if none is named.
        chosen: the platform, if the command line names one.
    Raises:
        HostError: no engine answers, or the chosen one is of another kind.
    """
    from cluster_kit.platforms.platform import all_platforms  # not for Tab

    engine: Engine | None = None
    up: Sequence[str] = ()
    if reference and chosen is None:  # the name of a cluster that is up needs no manifest
        with contextlib.suppress(HostError, EngineError):
            engine = host.connect()
            up = engine.clusters()
    elsewhere = _started_elsewhere(reference, workspace, chosen, up)
    if chosen is not None:
        return host.connect(chosen, elsewhere.settings if elsewhere else {})
    if elsewhere is not None:
        return host.connect(elsewhere.engine, elsewhere.settings)
    engine = engine or host.connect()
    for platform in all_platforms():
        if not platform.is_beside(engine):
            continue
        on_nodes = host.connect(platform.name)
        here, on_nodes_up = engine.clusters(), on_nodes.clusters()
        if not reference:
            only_on_nodes = bool(on_nodes_up and not here)
        else:
            only_on_nodes = _name(reference, workspace, (*here, *on_nodes_up)) in set(
                on_nodes_up
            ) - {*here}
        if only_on_nodes:
            return on_nodes
    return engine


def of_workspace(
    containers: Iterable[ContainerSummary], workspace: Workspace, up: Iterable[str]
) -> list[str]:
    """The clusters that are up and have their runs in this workspace.

    If no container of a cluster shows its output directory, the cluster belongs to this workspace
    if it has runs here.
    """
    outputs: dict[str, list[Path]] = {name: [] for name in up}
    for container in containers:
        if container.output:
            outputs.setdefault(container.cluster, []).append(Path(container.output))
    roots = {workspace.root, workspace.root.resolve()}
    return [
        name
        for name, output in outputs.items()
        if any(path.is_relative_to(root) for path in output for root in roots)
        or (not output and name in workspace.known())
    ]


def _started_elsewhere(
    reference: str | None, workspace: Workspace, chosen: str | None, up: Sequence[str]
) -> Cluster | None:
    """The cluster of a running or kept run on another platform; None if there is none."""
    from cluster_kit.platforms.platform import platform_of

    if chosen is not None and platform_of(chosen).by_docker:
        return None
    name = _name(reference, workspace, up) if reference else ""
    newest = newest_run_directory(workspace.runs(name)) if name else None
    if newest is None:
        return None
    from cluster_kit.run.run_directory import read_record, recorded_platform  # see `_name_in`

    platform = recorded_platform(newest)
    if platform is None or platform_of(platform).by_docker or chosen not in (None, platform):
        return None
    try:
        record = read_record(newest)
    except UsageError:
        return None
    if record is None:
        return None
    from cluster_kit.run.outcome import read_outcome

    outcome = read_outcome(newest, record.id)
    return record.cluster if outcome is None or outcome.kept else None


def _name(reference: str, workspace: Workspace, up: Sequence[str]) -> str:
    """The cluster's name; the reference itself if its manifest cannot be read."""
    if reference in up:
        return reference
    try:
        return _name_in(reference, workspace)
    except (UsageError, ManifestError):
        return Path(reference).stem


def _name_in(reference: str, workspace: Workspace) -> str:
    """The name of a manifest's cluster; raises ManifestError, or UsageError if there is none."""
    # Building the manifest's models takes a third of a command's time; often no manifest is needed.
    from cluster_kit.manifest.load import find
    from cluster_kit.platforms.platform import load

    return load(find(reference, workspace.manifests)).manifest.name


def cluster_name(reference: str, workspace: Workspace, up: Iterable[str]) -> str:
    """The name of the cluster that a command line names directly or by its manifest.

    A cluster that is up or has run is found by its name even if its manifest is missing or invalid.

    Args:
        up: the names of the clusters that are up.
    Raises:
        UsageError: no cluster of that name was found.
        ManifestError: its manifest was found, but cannot be read.
    """
    known = workspace.known()
    if reference in up:
        return reference
    try:
        return _name_in(reference, workspace)
    except (UsageError, ManifestError) as error:
        if reference in known:
            return reference
        if isinstance(error, ManifestError):
            raise
    role, _, index = reference.rpartition("-")
    of_a_task = role in ROLES and index.isdigit()
    raise UsageError(
        f"no cluster `{reference}`: neither up, nor a manifest in compose/, nor a run in runs/",
        (f"`{reference}` is a task's name, and a cluster's is expected here; " if of_a_task else "")
        + proposal(Path(reference).stem, sorted({*up, *known, *names(workspace.manifests)})),
    )
