"""Runs the matrix: the cells of one role share a run, and what it did not reach is run again."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cluster_kit.drill.matrix import (
    BREAKS,
    Cell,
    Judged,
    System,
    groups,
    judged,
    not_reached,
    roles_of,
    scenario,
)
from cluster_kit.drill.result import Drill
from cluster_kit.drill.run import drill
from cluster_kit.drill.scenario_file import Written
from cluster_kit.host import Host
from cluster_kit.manifest.load import find
from cluster_kit.platforms.engine import Engine
from cluster_kit.platforms.planning import load
from cluster_kit.resolved import Cluster
from cluster_kit.run.request import Request
from cluster_kit.show.view import View
from cluster_kit.util.paths import FILES
from cluster_kit.workspace import Workspace, write_atomically

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


ALL = "matrix.json"
"""All cells together."""


class Store:
    """The results below one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def has(self, cell: Cell) -> bool:
        return self._file(cell).exists()

    def save(self, host: Host, judged: Judged, engine: Mapping[str, Any]) -> None:
        """Write a cell's result, and all results together; raises OSError.

        Args:
            engine: what `docker info` shows.
        """
        facts = judged.facts() | {
            "time": datetime.fromtimestamp(host.clock.time(), UTC).isoformat(timespec="seconds"),
            "commit": commit(host),
            "machine": machine(engine),
            "load": round(os.getloadavg()[0], 1),
        }
        write_atomically(self._file(judged.cell), _text(facts))

    def gather(self, cells: Sequence[Cell]) -> list[dict[str, Any]]:
        """The results that there are of these cells, in order."""
        return [json.loads(self._file(cell).read_text()) for cell in cells if self.has(cell)]

    def write_all(self, cells: Sequence[Cell]) -> None:
        """Write the results of these cells into one file; raises OSError."""
        write_atomically(self._folder / ALL, _text(self.gather(cells)))

    def _file(self, cell: Cell) -> Path:
        return self._folder / f"{cell.key}.json"


def _text(facts: Any) -> str:
    return json.dumps(facts, indent=2, ensure_ascii=False) + "\n"


def commit(host: Host) -> str:
    """The commit of the kit's clone, with a + if files differ from it; "" if it is no clone."""
    found = host.processes.run(("git", "rev-parse", "--short", "HEAD"), cwd=str(FILES))
    if not found.ok:
        return ""
    tracked = ("git", "status", "--porcelain", "--untracked-files=no")
    return found.output.strip() + (
        "+" if host.processes.run(tracked, cwd=str(FILES)).output else ""
    )


def machine(engine: Mapping[str, Any]) -> str:
    """What the figures were taken on, in a few words."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text().splitlines() if file.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    memory = engine.get("MemTotal", 0) / 2**30
    return (
        f"{os.cpu_count()} cores ({next(names, platform.machine())}), {memory:.0f} GiB,"
        f" Docker {engine.get('ServerVersion', '?')}"
    )
