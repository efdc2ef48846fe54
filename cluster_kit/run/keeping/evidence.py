"""Saves a run's logs and events before anything is removed."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cluster_kit.engine.containers import Container, Event
from cluster_kit.engine.interface import Engine
from cluster_kit.errors import EngineError
from cluster_kit.util.terminal import harmless
from cluster_kit.workspace import RunDirectory

_PARALLEL = 8


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


def read_logs(engine: Engine, containers: Sequence[Container]) -> dict[str, str]:
    """The logs that the engine still has, by task name; what steers a terminal is left out."""

    def read(container: Container) -> str | None:
        try:
            return harmless(engine.logs(container.id))
        except EngineError:
            return None

    with ThreadPoolExecutor(_PARALLEL) as pool:
        texts = list(pool.map(read, containers))
    return {c.name: text for c, text in zip(containers, texts, strict=True) if text is not None}


def save_logs(run: RunDirectory, logs: Mapping[str, str]) -> None:
    """Save the logs, by task name; raises OSError.

    A resumed run appends to the files of the run that it goes on with. What has been saved of a log
    before is not saved twice.
    """
    for name, text in logs.items():
        with (run.logs / f"{name}.log").open("ab+") as file:
            file.seek(0)
            file.write(_unsaved(file.read(), text.encode()))


def _unsaved(saved: bytes, log: bytes) -> bytes:
    """What follows in a log after the part of it that was saved; each line has its own time."""
    first, _, _ = log.partition(b"\n")
    begins = saved.rfind(first + b"\n") if first else -1
    part = saved[begins:] if begins >= 0 else b""
    return log[len(part) :] if log.startswith(part) else log
