"""The table of a cluster's tasks: the same for the live view and for `status`."""

from __future__ import annotations

from collections.abc import Iterable

from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

from cluster_kit.observe.task_view import GOOD_CODES, State, TaskView
from cluster_kit.observe.usage import Usage
from cluster_kit.show.groups import TO, Group

_SCORES = {"accuracy": "accuracy", "map_50": "mAP@0.5"}
"""Scores that a task may have, and the headings of their columns."""
_STYLES = {
    State.READY: "cyan",
    State.TRAINING: "green",
    State.SCORING: "green",
    State.PAUSED: "yellow",
    State.RESTARTING: "yellow",
    State.ENDED: "dim",
}


WIDE = 106
"""From so many columns on there is room for what tasks use."""


def status_table(tasks: Iterable[TaskView | Group], title: str = "", width: int = 80) -> Table:
    """One row per task or group: name, IP, GPUs, state, restarts, step, steps/s, loss and scores;
    and what it uses, if the terminal is wide enough and any task tells.

    An evaluator's step is the last checkpoint that it has scored.
    """
    tasks = list(tasks)
    uses = width >= WIDE and any(task.usage for task in tasks)
    scores = [s for s in _SCORES if any(getattr(t, s, None) is not None for t in tasks)] or [
        "accuracy"
    ]
    table = Table(
        title=title or None, title_justify="left", box=None, pad_edge=False, padding=(0, 1, 0, 0)
    )
    for heading in ("task", "ip", "gpu", "state"):
        table.add_column(heading, no_wrap=True)
    for heading in ("restarts", "step", "steps/s", "loss", *(_SCORES[score] for score in scores)):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("cpu", "mem", "net") if uses else ():
        table.add_column(heading, justify="right", no_wrap=True)
    for task in tasks:
        if isinstance(task, Group):
            table.add_row(*_of_group(task, len(scores), uses))
            continue
        table.add_row(
            task.name,
            task.ip,
            Text(_gpus(task), style="bold red" if task.gpu_problem else ""),
            Text(_short_state(task), style=_style(task)),
            str(task.restarts or "-"),
            Text(task.checkpoint or _figure(task.step, ".0f")),
            _figure(task.steps_per_s, ".1f"),
            _figure(task.loss, ".4f"),
            *(_figure(getattr(task, score), ".4f") for score in scores),
            *(_used(task.usage) if uses else ()),
        )
    return table


def _of_group(group: Group, scores: int, uses: bool) -> Iterable[str]:
    """A row of several tasks: `38 training, 2 ready`, and their speeds from the slowest on."""
    low, high = group.speeds or (None, None)
    speeds = _figure(low, ".1f") if low == high else f"{low:.1f}{TO}{high:.1f}"
    return (
        group.name,
        "",
        str(group.gpus or "-"),
        group.states,
        str(group.restarts or "-"),
        _figure(group.step, ".0f"),
        speeds,
        "-",
        *("-" for _ in range(scores)),
        *(_used(group.usage) if uses else ()),
    )


def remarks(tasks: Iterable[TaskView]) -> list[str]:
    """What is to be said below the table: a line for each straggler, and for each task that has
    other GPUs than it was promised."""
    tasks = list(tasks)
    lag = [task.straggler.message for task in tasks if task.straggler and task.lags]
    return lag + [task.gpu_problem for task in tasks if task.gpu_problem]


def _gpus(task: TaskView) -> str:
    """What the engine was asked for, a mark if the task has something else, and how busy it is."""
    asked = ",".join(task.gpus) or "-"
    if task.gpu_problem:
        return f"{asked} (sees {len(task.gpus_seen or ())})"
    busy = task.usage.gpu_busy if task.usage else None
    return asked if busy is None else f"{asked} ({busy:.0%})"


def _used(usage: Usage | None) -> tuple[str, str, str]:
    """Busy CPUs, memory, and bytes per second in both directions together."""
    if usage is None:
        return "-", "-", "-"
    known = usage.rx_bps is not None and usage.tx_bps is not None
    net = f"{decimal(round((usage.rx_bps or 0) + (usage.tx_bps or 0)))}/s" if known else "-"
    return _figure(usage.cpus, ".2f"), decimal(round(usage.memory)), net


def state_text(task: TaskView) -> str:
    """The task's state, with its exit code if it has one: `training`, or `ended (137)`."""
    return f"{task.state} ({task.exit_code})" if task.exit_code is not None else task.state


def _short_state(task: TaskView) -> str:
    """The state, with the exit code only if the task has ended: 80 columns have no more room."""
    if task.lags:
        return "straggler"
    return state_text(task) if task.state is State.ENDED else task.state


def _style(task: TaskView) -> str:
    if task.exit_code not in GOOD_CODES:
        return "bold red"
    return "yellow" if task.lags else _STYLES.get(task.state, "")


def _figure(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
