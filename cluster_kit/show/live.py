"""What a person sees while a cluster runs: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from typing import Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from cluster_kit.observe.state import RunState
from cluster_kit.observe.task_view import State, TaskView

MAX_ROWS = 24
_SCORES = {"accuracy": "accuracy", "map_50": "mAP@0.5"}
"""Scores that a task may have, and what their columns are called."""
_COLOURS = {
    State.READY: "cyan",
    State.TRAINING: "green",
    State.SCORING: "green",
    State.PAUSED: "yellow",
    State.RESTARTING: "yellow",
    State.ENDED: "dim",
}


class View(Protocol):
    """Where the launch tells its story."""

    def phase(self, text: str) -> None: ...
    def warn(self, text: str) -> None: ...
    def update(self, seen: RunState) -> None: ...
    def log(self, task: str, line: str) -> None: ...
    def close(self) -> None: ...


def make_view(console: Console) -> View:
    """A live view on a terminal, plain lines elsewhere."""
    return LiveView(console) if console.is_terminal else PlainView(console)


def status_table(tasks: Iterable[TaskView], title: str = "") -> Table:
    """One row a task: role, IP, GPU, state, restarts, step, steps/s, loss, score.

    An evaluator's step is the checkpoint that it has scored last.
    """
    tasks = list(tasks)
    scores = [s for s in _SCORES if any(getattr(t, s) is not None for t in tasks)] or ["accuracy"]
    table = Table(
        title=title or None, title_justify="left", box=None, pad_edge=False, padding=(0, 1, 0, 0)
    )
    for heading in ("task", "ip", "gpu", "state"):
        table.add_column(heading, no_wrap=True)
    for heading in ("restarts", "step", "steps/s", "loss", *(_SCORES[score] for score in scores)):
        table.add_column(heading, justify="right", no_wrap=True)
    for task in tasks:
        table.add_row(
            task.name,
            task.ip,
            ",".join(task.gpus) or "-",
            Text(_state(task), style=_style(task)),
            str(task.restarts or "-"),
            Text(task.checkpoint or _figure(task.step, ".0f")),
            _figure(task.steps_per_s, ".1f"),
            _figure(task.loss, ".4f"),
            *(_figure(getattr(task, score), ".4f") for score in scores),
        )
    return table


def _state(task: TaskView) -> str:
    return f"{task.state} ({task.exit_code})" if task.exit_code is not None else task.state


def _style(task: TaskView) -> str:
    if task.exit_code not in (None, 0, 143):
        return "bold red"
    return _COLOURS.get(task.state, "")


def _figure(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


class LiveView:
    """One table that is redrawn in place, log lines scrolling above it."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._started = time.monotonic()
        self._phase = ""
        self._seen: RunState | None = None
        self._live: Live | None = None

    def phase(self, text: str) -> None:
        self._phase = text
        self._redraw()

    def warn(self, text: str) -> None:
        self._console.print(Text.assemble(("warning: ", "bold yellow"), text), soft_wrap=True)

    def update(self, seen: RunState) -> None:
        self._seen = seen
        self._redraw()

    def log(self, task: str, line: str) -> None:
        self._console.print(Text.assemble((f"{task:>12} ", "bold cyan"), line))

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _redraw(self) -> None:
        if self._live is None:
            self._live = Live(console=self._console, refresh_per_second=4, transient=True)
            self._live.start()
        elapsed = f"{time.monotonic() - self._started:.0f} s"
        head = Spinner("dots", Text.assemble((self._phase, "bold"), f"  {elapsed}"))
        if self._seen is None:
            self._live.update(head)
            return
        rows = list(self._seen.tasks.values())
        hidden = len(rows) - MAX_ROWS
        parts: list[RenderableType] = [head, status_table(rows[:MAX_ROWS])]
        if hidden > 0:
            parts.append(Text(f"… and {hidden} more tasks (cluster-kit status)", style="dim"))
        self._live.update(Group(*parts))


class PlainView:
    """One line for each thing that changes; made for CI logs."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._states: dict[str, tuple[State, int | None, int]] = {}

    def phase(self, text: str) -> None:
        self._line(text)

    def warn(self, text: str) -> None:
        self._line(f"warning: {text}")

    def update(self, seen: RunState) -> None:
        for task in seen.tasks.values():
            now = (task.state, task.exit_code, task.restarts)
            if self._states.get(task.name, (State.CREATED, None, 0)) != now:
                restarts = f", restart {task.restarts}" if task.restarts else ""
                self._line(f"{task.name:>12}  {_state(task)}{restarts}  {task.ip}")
            self._states[task.name] = now

    def log(self, task: str, line: str) -> None:
        self._line(f"{task:>12} | {line}")

    def close(self) -> None:
        sys.stderr.flush()

    def _line(self, text: str) -> None:
        self._console.print(text, markup=False, emoji=False, highlight=False, soft_wrap=True)
