"""The view of a command that only waits: nothing but warnings."""

from __future__ import annotations

from rich.console import Console

from cluster_kit.observe.state import RunState


class QuietView:
    """Shows warnings."""

    draws = False

    def __init__(self, console: Console) -> None:
        self._console = console

    def count_from(self, began: float) -> None:
        pass

    def phase(self, text: str) -> None:
        pass

    def warn(self, text: str) -> None:
        self._console.print(f"warning: {text}", markup=False, soft_wrap=True)

    def update(self, seen: RunState) -> None:
        pass

    def log(self, task: str, line: str) -> None:
        pass

    def close(self) -> None:
        pass
