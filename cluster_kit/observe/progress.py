"""Reads what tasks write to `/output/progress/<task>.jsonl` (see images/trainer/README.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster_kit.engine.containers import Container


@dataclass(frozen=True)
class Entry:
    """One line of one task's progress file; `time` in Unix seconds."""

    task: str
    time: float
    event: str
    fields: dict[str, Any]


class ProgressReader:
    """Hands out each new entry once, those older than `since` (an earlier run's) never."""

    def __init__(self, folder: Path, since: float) -> None:
        self._folder = folder
        self._since = since
        self._offsets: dict[Path, int] = {}

    def poll(self) -> list[Entry]:
        """New entries of all tasks since the last call, oldest first."""
        entries = [
            entry for path in sorted(self._folder.glob("*.jsonl")) for entry in self._new(path)
        ]
        return sorted(entries, key=lambda entry: entry.time)

    def _new(self, path: Path) -> Iterator[Entry]:
        try:
            with path.open("rb") as file:
                file.seek(self._offsets.get(path, 0))
                text = file.read()
        except OSError:
            return  # removed meanwhile, or not a file: the program may write here what it likes
        whole = text[: text.rfind(b"\n") + 1]
        self._offsets[path] = self._offsets.get(path, 0) + len(whole)
        for line in whole.splitlines():
            entry = _parse(path.stem, line)
            if entry is not None and entry.time >= self._since:
                yield entry


def entries_of(containers: Sequence[Container]) -> list[Entry]:
    """What the tasks of a cluster have written since its containers were created, oldest first.

    [] where their output directory cannot be read. In a directory that an earlier run has used
    (`--resume`) its entries are older.
    """
    if not containers or not containers[0].output:
        return []
    folder = Path(containers[0].output) / "progress"
    return ProgressReader(folder, min(container.created for container in containers)).poll()


def _parse(task: str, line: bytes) -> Entry | None:
    """An entry, or None for a line that a user's program wrote in another form."""
    try:
        fields = json.loads(line)
        return Entry(task, float(fields.pop("time")), str(fields.pop("event")), fields)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None
