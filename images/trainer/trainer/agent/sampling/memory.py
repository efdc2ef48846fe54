"""How much memory this container has in use."""

from __future__ import annotations

import os
from pathlib import Path

from trainer.agent import control_group

PROCESSES = Path("/proc")
PAGE = os.sysconf("SC_PAGE_SIZE")


def memory() -> int:
    """Bytes, as the control group counts them; else what its processes have each for itself."""
    counted = control_group.memory()
    return of_processes() if counted is None else counted


def of_processes(processes: Path = PROCESSES) -> int:
    """Bytes that processes have in memory and share with none; a file's pages are shared."""
    pages = 0
    for statm in processes.glob("[0-9]*/statm"):
        try:
            _, resident, shared, *_ = map(int, statm.read_text().split())
        except (OSError, ValueError):
            continue  # it has ended by now
        pages += max(resident - shared, 0)
    return pages * PAGE
