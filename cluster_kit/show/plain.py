"""The view without a terminal, for CI logs: one line for each change."""

from __future__ import annotations

import sys

from rich.console import Console

from cluster_kit.observe.state import RunState
from cluster_kit.observe.task_view import State
from cluster_kit.show.lines import bounded, visible
from cluster_kit.show.task_table import state_text

LONGEST = 500
"""The most characters of a task's line; its log has the rest."""


class PlainView:
    """Prints lines as they come and never redraws them."""

    draws = True

    def __init__(self, console: Console) -> None:
        self._console = console
        self._states: dict[str, tuple[State, int | None, int]] = {}

    def count_from(self, began: float) -> None:
        pass

    def phase(self, text: str) -> None:
        self._line(text)

    def warn(self, text: str) -> None:
        self._line(f"warning: {text}")

    def update(self, seen: RunState) -> None:
        for task in seen.tasks.values():
            now = (task.state, task.exit_code, task.restarts)
            if self._states.get(task.name, (State.CREATED, None, 0)) != now:
                restarts = f", restart {task.restarts}" if task.restarts else ""
                self._line(f"{task.name:>12}  {state_text(task)}{restarts}  {task.ip}")
            self._states[task.name] = now

    def log(self, task: str, line: str) -> None:
        if text := visible(line):
            self._line(f"{task:>12} | {bounded(text, LONGEST)}")

    def close(self) -> None:
        sys.stderr.flush()

    def _line(self, text: str) -> None:
        self._console.print(text, markup=False, emoji=False, highlight=False, soft_wrap=True)
