"""Which engine a cluster that is up runs on: it is looked for, nothing is written down."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cluster_kit.backends.choose import connect
from cluster_kit.engine import client
from cluster_kit.engine.interface import Engine
from cluster_kit.errors import ManifestError, UsageError
from cluster_kit.manifest.find import find
from cluster_kit.manifest.load import load
from cluster_kit.parts import EngineName
from cluster_kit.run.keeping.record import read_outcome, read_record
from cluster_kit.workspace import Workspace, newest_run_directory


def reach(reference: str | None, workspace: Workspace, chosen: EngineName | None = None) -> Engine:
    """The engine that has the cluster which a command line names: this host's, or its swarm.

    Kubernetes if a run of it was started there and goes on. This host's if neither has it; the
    swarm if no cluster is named and only that has any.

    Args:
        reference: the cluster's name or its manifest's path, None or "" if none is named.
        chosen: the engine if it is named.
    Raises:
        HostError: no engine answers, or the one that is chosen is none of this kind.
    """
    namespace = _on_kubernetes(reference, workspace) if chosen in (None, "kubernetes") else None
    if chosen is not None:
        return connect(chosen, namespace or "")
    if namespace is not None:
        return connect("kubernetes", namespace)
    engine = client.connect()
    swarm = engine.info().get("Swarm") or {}
    if not swarm.get("ControlAvailable"):
        return engine
    on_nodes = connect("swarm")
    here, there = engine.clusters(), on_nodes.clusters()
    if not reference:
        return on_nodes if there and not here else engine
    return (
        on_nodes if _name(reference, workspace, (*here, *there)) in set(there) - {*here} else engine
    )


def _on_kubernetes(reference: str | None, workspace: Workspace) -> str | None:
    """The namespace of a run of the cluster that goes on, or was kept; None if there is none."""
    name = _name(reference, workspace, ()) if reference else ""
    newest = newest_run_directory(workspace.runs(name)) if name else None
    try:
        record = read_record(newest) if newest else None
    except UsageError:
        return None
    on = record.cluster.kubernetes if record else None
    if newest is None or record is None or on is None:
        return None
    outcome = read_outcome(newest, record.id)
    return on.namespace if outcome is None or outcome.kept else None


def _name(reference: str, workspace: Workspace, up: Sequence[str]) -> str:
    """The cluster's name; the reference itself if its manifest cannot be read."""
    if reference in up:
        return reference
    try:
        return load(find(reference, workspace.manifests)).manifest.name
    except (UsageError, ManifestError):
        return Path(reference).stem
