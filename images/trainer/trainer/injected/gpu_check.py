"""Which GPUs a task was promised against what it sees, in words.

Also loaded by its path into the programs of users (on_path/): imports nothing of this package,
whose name may be that of a package of theirs.
"""

from __future__ import annotations

from collections.abc import Sequence


def broken(task: str, promised: Sequence[str], sees: Sequence[str]) -> str:
    """'worker-1 was promised GPU 1, sees none'; '' if the promise was kept."""
    if len(promised) == len(sees):
        return ""
    seen = f"{len(sees)} ({', '.join(sees)})" if sees else "none"
    return f"{task} was promised {_named(promised)}, sees {seen}"


def device_ids(text: str) -> tuple[str, ...]:
    """The ids of a list separated by commas: `0,1`, `GPU-…`, `nvidia.com/gpu=0`."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _named(ids: Sequence[str]) -> str:
    if not ids:
        return "no GPU"
    if len(ids) > 1:
        return f"{len(ids)} GPUs ({', '.join(ids)})"
    return f"GPU {ids[0]}" if ids[0].isdigit() else ids[0]
