"""Load and plan: what every verb that takes a manifest does first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster_kit.advice import Hint, advise
from cluster_kit.cluster import Cluster
from cluster_kit.engine.client import Engine
from cluster_kit.errors import HostError, ManifestError, UsageError
from cluster_kit.host.gather import gather
from cluster_kit.image.build import image_tag
from cluster_kit.manifest import overrides
from cluster_kit.manifest.load import find, load, names
from cluster_kit.plan.plan import OwnImages, plan
from cluster_kit.programs import resolve
from cluster_kit.util.nearest import proposal
from cluster_kit.workspace import Workspace


@dataclass(frozen=True)
class Order:
    """What a person asked for: a manifest, and what overrides it."""

    manifest: str
    overrides: Mapping[str, Any]


def planned(order: Order, workspace: Workspace, engine: Engine | None) -> Cluster:
    """The cluster that a manifest means on this host, now.

    Raises:
        UsageError: no such manifest.
        ManifestError: everything that is wrong with it.
    """
    path = find(order.manifest, workspace.manifests)
    try:
        loaded = load(path, order.overrides)
        found = resolve.resolve(loaded.manifest, path.parent)
        own = OwnImages(cpu=image_tag("cpu"), gpu=image_tag("gpu"))
        return plan(loaded, found, gather(engine), own)
    except ManifestError as error:
        raise overrides.told(error, order.overrides) from None


def advice(order: Order, workspace: Workspace) -> tuple[Hint, ...]:
    """What the program that a manifest names would stumble over; the manifest can be planned."""
    path = find(order.manifest, workspace.manifests)
    manifest = load(path, order.overrides).manifest
    return advise(resolve.program_file(manifest, path.parent), manifest)


def cluster_name(reference: str, workspace: Workspace, up: Iterable[str]) -> str:
    """The cluster that `status`, `logs` and `down` mean by a name or a manifest.

    A cluster that is up, or has been, goes by its own name, whatever has become of its manifest.

    Raises:
        UsageError: there is none of that name, and never was.
        ManifestError: there is a manifest, and it cannot be read.
    """
    known = workspace.known()
    if reference in up:
        return reference
    try:
        return load(find(reference, workspace.manifests)).manifest.name
    except (UsageError, ManifestError) as error:
        if reference in known:
            return reference
        if isinstance(error, ManifestError):
            raise
    raise UsageError(
        f"no cluster `{reference}`: neither up, nor a manifest in compose/, nor a run in runs/",
        proposal(Path(reference).stem, sorted({*up, *known, *names(workspace.manifests)})),
    )


def engine_or_none() -> Engine | None:
    """Rendering needs no engine: without one the host's own routes must do."""
    try:
        return Engine()
    except HostError:
        return None
