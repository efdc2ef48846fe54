"""Runs the matrix: the cells of one role share a run, and what it did not reach is run again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from cluster_kit.drill.load import Written
from cluster_kit.drill.matrix.cells import BREAKS, Cell, groups, roles_of, scenario
from cluster_kit.drill.matrix.judge import Judged, judged, not_reached
from cluster_kit.drill.matrix.systems import System
from cluster_kit.drill.report import Drill
from cluster_kit.drill.run import drill
from cluster_kit.host import Host
from cluster_kit.manifest.load import find
from cluster_kit.platforms.engine import Engine
from cluster_kit.platforms.planning import load
from cluster_kit.resolved import Cluster
from cluster_kit.run.request import Request
from cluster_kit.show.view import View
from cluster_kit.workspace import Workspace

NewView = Callable[[], View]


def cells_of(systems: Sequence[System], workspace: Workspace) -> list[Cell]:
    """All cells of these systems.

    Raises:
        UsageError: a manifest was not found.
        ManifestError: it cannot be read.
    """
    return [
        Cell(system, role, fault)
        for system in systems
        for role in roles_of(load(find(system.manifest, workspace.manifests)).manifest)
        for fault in BREAKS
    ]


def run_all(
    host: Host, cells: Sequence[Cell], workspace: Workspace, new_view: NewView
) -> Iterator[Judged]:
    """Yields each cell as soon as its run is over.

    Raises:
        Interrupted: by Ctrl-C; the cluster was removed.
        KitError: a run failed before a verdict.
    """
    for group in groups(cells):
        yield from _until_all_are_done(host, group, workspace, new_view)


def _until_all_are_done(
    host: Host, cells: Sequence[Cell], workspace: Workspace, new_view: NewView
) -> Iterator[Judged]:
    """A run that ends before it has met all of its faults leaves the rest to another one.

    Unless it has met none: another one, for fewer faults, would be no longer.
    """
    pending = list(cells)
    while pending:
        done = _run(host, pending, workspace, new_view)
        found = judged(pending, done, left_behind(host.connect(), done.outcome.cluster))
        found = found or [not_reached(cell, done) for cell in pending]
        yield from found
        pending = [cell for cell in pending if cell not in [one.cell for one in found]]


def _run(host: Host, cells: Sequence[Cell], workspace: Workspace, new_view: NewView) -> Drill:
    def written(cluster: Cluster) -> Written:
        return scenario(cells, cluster)

    system, view = cells[0].system, new_view()
    host.interrupts.interrupt_once()  # the end of the run before has ignored them
    try:
        request = Request(system.manifest, system.overrides(cells[0].role, len(cells)))
        return drill(host, request, written, 0, workspace, view)
    finally:
        view.close()


def left_behind(engine: Engine, cluster: str) -> list[str]:
    """The names of the cluster's containers and networks that are there; raises EngineError."""
    try:
        networks = [name for name, of, _ in engine.networks() if of == cluster]
        return [*(container.name for container in engine.containers(cluster)), *networks]
    finally:
        engine.close()
