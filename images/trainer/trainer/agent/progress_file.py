"""Writes the progress file: one JSON object per line, which the host reads during the run."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from trainer.agent.atomic import read_untrusted
from trainer.agent.errors import ContractError
from trainer.agent.task import EVALUATOR

if TYPE_CHECKING:
    from trainer.contract.events import Event

MOST_BYTES = 1 << 20
"""The maximum bytes of a progress file that are read at once; a longer line is left out."""


class Progress:
    """Appends events to one file. Each is a single write, so lines of two processes never mix.

    Args:
        again: create the file again if it was removed.
    """

    def __init__(self, path: Path, *, again: bool = True) -> None:
        self._path = path
        self._again = again
        self._cut = False
        try:
            self._file = _opened(path)
        except OSError as problem:
            raise ContractError(
                f"cannot write {path}: {problem.strerror}; mount a directory of this user's there"
            ) from problem

    def write(self, event: str, **keys: object) -> None:
        """Append an event.

        An event that cannot be written is lost; `disk_space` reports why and ends the job.
        """
        line = json.dumps({"time": round(time.time(), 3), "event": event, **keys}).encode() + b"\n"
        try:
            if self._again and not os.fstat(self._file).st_nlink:
                removed, self._file = self._file, _opened(self._path)
                os.close(removed)
            line = b"\n" + line if self._cut else line
            self._cut = os.write(self._file, line) < len(line)
        except OSError:
            return


def _opened(path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Another task can have created a FIFO here, and opening it would block.
    opened = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK, 0o644)
    os.set_blocking(opened, True)
    return opened


class Reports:
    """Reads new lines of all progress files except the evaluator's, which follows the training."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read = {path: path.stat().st_size for path in folder.glob("*.jsonl")}

    def new(self) -> Iterator[tuple[str, Event]]:
        """Yields (task, event) of each complete new line."""
        for path in self._folder.glob("*.jsonl"):
            read = self._read.get(path, 0)
            try:
                size = path.stat().st_size
                if path.name.startswith(EVALUATOR) or size == read:
                    continue
                read = read if size > read else 0  # removed and created again
                text = read_untrusted(path, MOST_BYTES, read)
            except OSError:
                continue  # the output is being removed
            complete = text[: text.rfind(b"\n") + 1]
            skipped = 0 if complete else len(text) // MOST_BYTES * MOST_BYTES
            self._read[path] = read + (len(complete) or skipped)
            for line in complete.splitlines():
                entry = parsed(line)
                if entry is not None:
                    yield path.stem, entry.event


@dataclass(frozen=True)
class Entry:
    """One line of a progress file; `time` in Unix seconds, None if the line has none."""

    time: float | None
    event: Event


def last_event(path: Path) -> Event | None:
    """Returns the event of a file's last line; None if that line is missing or not an event."""
    try:
        size = path.lstat().st_size
        *_, last = read_untrusted(path, MOST_BYTES, max(0, size - MOST_BYTES)).splitlines()
    except (OSError, ValueError):
        return None
    entry = parsed(last)
    return entry.event if entry else None


def parsed(line: bytes) -> Entry | None:
    """Returns the entry of a line; None if the line (of a user's program) is not an event."""
    from trainer.contract.events import decode, number  # servers only write, and start sooner

    try:
        values = json.loads(line, parse_constant=_refused, parse_float=_finite)
    except (ValueError, RecursionError):
        return None
    name = values.get("event") if isinstance(values, dict) else None
    event = decode(name, values) if isinstance(name, str) else None
    return None if event is None else Entry(number(values.get("time")), event)


def _refused(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refused(text)


def from_environment() -> Progress | None:
    """Returns the progress file named by CLUSTER_KIT_PROGRESS; None outside a cluster."""
    path = os.environ.get("CLUSTER_KIT_PROGRESS")
    return Progress(Path(path)) if path else None
