"""Where the launch tells its story, and which view a console gets."""

from __future__ import annotations

from typing import Protocol

from rich.console import Console

from cluster_kit.observe.state import RunState
from cluster_kit.show.live import LiveView
from cluster_kit.show.plain import PlainView


class View(Protocol):
    """What a person sees of a run."""

    def phase(self, text: str) -> None:
        """What is done now, in a few words."""
        ...

    def warn(self, text: str) -> None: ...

    def update(self, seen: RunState) -> None:
        """How all tasks stand."""
        ...

    def log(self, task: str, line: str) -> None:
        """A line of a task's log, as the task wrote it. Called from several threads."""
        ...

    def close(self) -> None:
        """Leave the terminal to others; a call after it opens the view again."""
        ...


def make_view(console: Console) -> View:
    """A live view on a terminal, plain lines elsewhere."""
    return LiveView(console) if console.is_terminal else PlainView(console)
