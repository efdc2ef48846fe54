"""The results of the matrix as files, one for each cell, so that it can be done in parts."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cluster_kit.drill.matrix.cells import Cell
from cluster_kit.drill.matrix.judge import Judged
from cluster_kit.host import Host
from cluster_kit.util.kit_files import FILES
from cluster_kit.workspace import write_atomically

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
