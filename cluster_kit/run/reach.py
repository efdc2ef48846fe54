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
from cluster_kit.workspace import Workspace


def reach(reference: str | None, workspace: Workspace, chosen: EngineName | None = None) -> Engine:
    """The engine that has the cluster which a command line names: this host's, or its swarm.

    This host's if neither has it; the swarm if no cluster is named and only that has any.

    Args:
        reference: the cluster's name or its manifest's path, None or "" if none is named.
        chosen: the engine if it is named.
    Raises:
        HostError: no engine answers, or the one that is chosen is none of this kind.
    """
    if chosen is not None:
        return connect(chosen)
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


def _name(reference: str, workspace: Workspace, up: Sequence[str]) -> str:
    """The cluster's name; the reference itself if its manifest cannot be read."""
    if reference in up:
        return reference
    try:
        return load(find(reference, workspace.manifests)).manifest.name
    except (UsageError, ManifestError):
        return Path(reference).stem
