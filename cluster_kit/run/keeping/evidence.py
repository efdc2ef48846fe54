"""Saves a run's logs and events before anything is removed."""

from __future__ import annotations

import contextlib
import json
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from itertools import dropwhile, islice
from pathlib import Path
from typing import Any, BinaryIO

from cluster_kit.errors import EngineError
from cluster_kit.platforms.engine import Container, Engine, Event
from cluster_kit.util.masking import Mask
from cluster_kit.util.terminal import harmless
from cluster_kit.workspace import RunDirectory

_PARALLEL = 8
LAST_BYTES = 1 << 20
_LONGEST = 2 << 20
"""Bytes, of which the last line of a saved log is a part."""


def read_events(run: RunDirectory, since: float) -> list[Event]:
    """The saved events since Unix time `since`; invalid lines are left out."""
    events = []
    with contextlib.suppress(OSError):
        for line in _events(run).read_bytes().splitlines():
            with contextlib.suppress(ValueError, TypeError):
                events.append(Event(**json.loads(line)))
    return [event for event in events if event.time >= since]


def _events(run: RunDirectory) -> Path:
    return run.path / "events.jsonl"


def save_events(run: RunDirectory, events: Sequence[Event]) -> None:
    """Append the events to the run's events.jsonl, but for those that it has; raises OSError."""
    with _events(run).open("a+", encoding="utf-8") as file:
        file.seek(0)
        saved = set(file)
        lines = (json.dumps(_facts(event)) + "\n" for event in events)
        file.writelines(line for line in lines if line not in saved)


def _facts(event: Event) -> dict[str, Any]:
    facts = asdict(event)
    return facts if facts.pop("said") == "" else {**facts, "said": event.said}


def log_lines(
    engine: Engine, container: Container, *, stderr: bool = False, mask: Mask = str
) -> Iterator[str]:
    """Yields the lines of a log that the engine still has, without what steers a terminal.

    Args:
        mask: masks secrets that the engine does not know: not every one does.
    Raises:
        EngineError: the engine does not give it.
    """
    return map(mask, map(harmless, engine.lines(container.id, stderr=stderr)))


def without_log(engine: Engine, containers: Sequence[Container]) -> list[str]:
    """Names of the tasks whose log the engine does not give."""

    def lacks(container: Container) -> bool:
        try:
            next(log_lines(engine, container), None)
        except EngineError:
            return True
        return False

    with ThreadPoolExecutor(_PARALLEL) as pool:
        lacking = list(pool.map(lacks, containers))
    return [c.name for c, lacks_it in zip(containers, lacking, strict=True) if lacks_it]


def last_lines(
    engine: Engine,
    container: Container,
    *,
    stderr: bool = False,
    most: int = LAST_BYTES,
    mask: Mask = str,
) -> str:
    """The end of a log, `most` characters; "" if the engine does not give it."""
    kept: deque[str] = deque()
    size = 0
    with contextlib.suppress(EngineError):
        for line in log_lines(engine, container, stderr=stderr, mask=mask):
            kept.append(line)
            size += len(line) + 1
            while size > most:
                size -= len(kept.popleft()) + 1
    return "\n".join(kept)


def save_logs(
    run: RunDirectory, engine: Engine, containers: Sequence[Container], mask: Mask = str
) -> None:
    """Save the logs that the engine still has; raises OSError.

    A resumed run appends to the files of the run that it goes on with. What has been saved of a log
    before is not saved twice.
    """

    def save(container: Container) -> None:
        with contextlib.suppress(EngineError):
            save_log(
                run.logs / f"{container.name}.log", lambda: log_lines(engine, container, mask=mask)
            )

    with ThreadPoolExecutor(_PARALLEL) as pool:
        list(pool.map(save, containers))


def save_log(path: Path, read: Callable[[], Iterator[str]]) -> None:
    """Append to a file what it does not have of a log, line by line; raises OSError.

    Args:
        read: returns the lines of the whole log, each with its time in front.
    """
    with path.open("ab+") as file:
        last, lines = _last_line(file), read()
        if last and last in read():
            lines = islice(dropwhile(lambda line: line != last, lines), 1, None)
        file.writelines(f"{line}\n".encode() for line in lines)


def _last_line(file: BinaryIO) -> str:
    """The last line of a file, "" if it has none."""
    file.seek(max(0, file.seek(0, os.SEEK_END) - _LONGEST))
    return file.read().rstrip(b"\n").rpartition(b"\n")[2].decode("utf-8", "replace")
