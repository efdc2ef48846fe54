"""What is saved of a run before anything is removed: logs and events, task by task."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

from cluster_kit.engine.containers import Container
from cluster_kit.engine.interface import Engine
from cluster_kit.observe.state import Observed
from cluster_kit.workspace import RunDirectory

_PARALLEL = 8


def save(
    engine: Engine, run: RunDirectory, seen: Observed, containers: list[Container]
) -> dict[str, str]:
    """Save everything and return the logs by task name. A resumed run adds to its files."""
    with (run.path / "events.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(asdict(event)) + "\n" for event in seen.events)
    with ThreadPoolExecutor(_PARALLEL) as pool:
        texts = list(pool.map(lambda container: engine.logs(container.id), containers))
    logs = {container.name: text for container, text in zip(containers, texts, strict=True)}
    for name, text in logs.items():
        with (run.logs / f"{name}.log").open("a", encoding="utf-8") as file:
            file.write(text)
    return logs
