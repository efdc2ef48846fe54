"""The interface by which a run shows itself, and the choice of a view for a console."""

from __future__ import annotations

from typing import Protocol

from rich.console import Console

from cluster_kit.observe.state import RunState
from cluster_kit.show.live import LiveView
from cluster_kit.show.plain import PlainView


class View(Protocol):
    """Shows a run to the user."""

    draws: bool
    """Whether it shows it on a terminal, on which a build may draw its progress, too."""

    def count_from(self, began: float) -> None:
        """Count the time that is shown from this value of `time.monotonic()`: the run's start."""
        ...

    def phase(self, text: str) -> None:
        """Show what the run does now, in a few words."""
        ...

    def warn(self, text: str) -> None:
        """Show a warning."""
        ...

    def update(self, seen: RunState) -> None:
        """Show the state of all tasks."""
        ...

    def log(self, task: str, line: str) -> None:
        """Show a line of a task's log, as the task wrote it. Called from several threads."""
        ...

    def close(self) -> None:
        """Release the terminal; any later call opens the view again."""
        ...


def make_view(console: Console) -> View:
    """A live view on a terminal, plain lines elsewhere."""
    return LiveView(console) if console.is_terminal else PlainView(console)
