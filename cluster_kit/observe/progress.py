"""Reads the progress files `/output/progress/<task>.jsonl` (see images/trainer/README.md)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster_kit.engine.containers import Container

SUFFIX = ".jsonl"
USAGE = ".usage"
"""Of the files in which tasks write what they use."""


@dataclass(frozen=True)
class Entry:
    """One line of one task's progress file; `time` in Unix seconds."""

    task: str
    time: float
    event: str
    fields: dict[str, Any]


class ProgressReader:
    """Returns each new entry once; those of an earlier run never.

    Args:
        since: Unix time; entries before it are of an earlier run.
        sizes: the first bytes of each file, by its name, that are of an earlier run.
        suffix: of the files to read; a task's name is what stands before it.
    """

    def __init__(
        self,
        folder: Path,
        since: float = 0.0,
        sizes: Mapping[str, int] | None = None,
        suffix: str = SUFFIX,
    ) -> None:
        self._suffix = suffix
        self._folder = folder
        self._since = since
        self._offsets = dict(sizes or {})

    def poll(self) -> list[Entry]:
        """New entries of all tasks since the last call, oldest first."""
        entries = [entry for name in self._changed() for entry in self._new(name)]
        return sorted(entries, key=lambda entry: entry.time)

    def _changed(self) -> list[str]:
        """The files to read: this is asked five times a second, and most have nothing new."""
        try:
            with os.scandir(self._folder) as files:
                return sorted(
                    file.name
                    for file in files
                    if file.name.endswith(self._suffix)
                    and _size(file) != self._offsets.get(file.name, 0)
                )
        except OSError:
            return []  # not there yet, or removed by now: the next call looks again

    def _new(self, name: str) -> Iterator[Entry]:
        offset = self._offsets.get(name, 0)
        try:
            with (self._folder / name).open("rb") as file:
                if file.seek(0, os.SEEK_END) < offset:
                    offset = 0  # removed, and written anew
                file.seek(offset)
                text = file.read()
        except OSError:
            return  # removed by now, or not a file: the user's program can write anything here
        complete = text[: text.rfind(b"\n") + 1]
        self._offsets[name] = offset + len(complete)
        for line in complete.splitlines():
            entry = _parse(name.removesuffix(self._suffix), line)
            if entry is not None and entry.time >= self._since:
                yield entry


def sizes(folder: Path) -> dict[str, int]:
    """The size in bytes of each progress file and usage file, by its name."""
    files = [*folder.glob(f"*{SUFFIX}"), *folder.glob(f"*{USAGE}")]
    return {path.name: path.stat().st_size for path in files if path.is_file()}


def _size(file: os.DirEntry[str]) -> int:
    """In bytes; 0 if the file is gone by now."""
    try:
        return file.stat().st_size
    except OSError:
        return 0


def entries_of(containers: Sequence[Container], suffix: str = SUFFIX) -> list[Entry]:
    """The entries of a cluster's tasks since its containers were created, oldest first.

    [] if their output directory cannot be read. Older entries, of the run that `--resume` goes on
    with, are left out.
    """
    if not containers or not containers[0].output:
        return []
    folder = Path(containers[0].output) / "progress"
    since = min(container.created for container in containers)
    return ProgressReader(folder, since, suffix=suffix).poll()


def _parse(task: str, line: bytes) -> Entry | None:
    """The entry of a line; None if a user's program wrote it in another format."""
    try:
        fields = json.loads(line)
        return Entry(task, float(fields.pop("time")), str(fields.pop("event")), fields)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None
