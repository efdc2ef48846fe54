"""What `status` shows of sidecars: a line for each, below the table of the tasks."""

from __future__ import annotations

from typing import Any

from cluster_kit.engine.containers import Container
from cluster_kit.observe.task_view import State


def line_of(one: Container) -> str:
    """Its name, its address, and what it does; how it ended if it has."""
    how = "" if one.exit_code is None else f" (exit code {one.exit_code})"
    memory = ": out of memory" if one.oom else ""
    return f"sidecar {one.name} at {one.ip}: {State.of_engine(one.state)}{how}{memory}"


def facts_of(one: Container) -> dict[str, Any]:
    """The same as values."""
    return {
        "name": one.name,
        "ip": one.ip,
        "state": State.of_engine(one.state),
        "exit_code": one.exit_code,
        "oom": one.oom,
    }
