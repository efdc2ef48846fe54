"""How a cluster stands now, from its containers and the progress files that they mount."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from cluster_kit.engine.containers import Container
from cluster_kit.engine.interface import Engine
from cluster_kit.observe.progress import ProgressReader
from cluster_kit.observe.state import TaskView, figures


def standing(engine: Engine, cluster: str) -> list[TaskView]:
    """Every task of a cluster, in task order; empty where no such cluster is up."""
    containers = engine.containers(cluster)
    newest = _newest(containers)
    return [replace(_view(c), **newest.get(c.name, {})) for c in containers]


def _view(container: Container) -> TaskView:
    return TaskView(
        name=container.name,
        role=container.role,
        ip=container.ip,
        gpus=container.gpus,
        state=container.state,
        exit_code=container.exit_code,
        restarts=container.restarts,
    )


def _newest(containers: list[Container]) -> dict[str, dict[str, Any]]:
    """The newest figures of each task; none where the output directory is not ours to read."""
    if not containers or not containers[0].output:
        return {}
    found: dict[str, dict[str, Any]] = {}
    for entry in ProgressReader(Path(containers[0].output) / "progress", since=0.0).poll():
        found[entry.task] = {**found.get(entry.task, {}), **figures(entry)}
    return found
