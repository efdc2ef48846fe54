"""Saves a run's logs and events before anything is removed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

from cluster_kit.engine.containers import Container, Event
from cluster_kit.engine.interface import Engine
from cluster_kit.errors import EngineError
from cluster_kit.workspace import RunDirectory

_PARALLEL = 8


def save_events(run: RunDirectory, events: Sequence[Event]) -> None:
    """Append the events to the run's events.jsonl; raises OSError."""
    with (run.path / "events.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(asdict(event)) + "\n" for event in events)


def save_logs(engine: Engine, run: RunDirectory, containers: Sequence[Container]) -> dict[str, str]:
    """Save the logs that the engine still has, and return them by task name; raises OSError.

    A resumed run appends to the files of the run that it goes on with.
    """

    def read(container: Container) -> str | None:
        try:
            return engine.logs(container.id)
        except EngineError:
            return None

    with ThreadPoolExecutor(_PARALLEL) as pool:
        texts = list(pool.map(read, containers))
    logs = {c.name: text for c, text in zip(containers, texts, strict=True) if text is not None}
    for name, text in logs.items():
        with (run.logs / f"{name}.log").open("a", encoding="utf-8") as file:
            file.write(text)
    return logs
