"""The table of a cluster's tasks, for the live view and for `status`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

from cluster_kit.facts import without_kind
from cluster_kit.observe.task_view import ALIVE, GOOD_CODES, State, TaskView
from cluster_kit.observe.usage import Usage
from cluster_kit.platforms.engine import Container

_ORDINARY = (*ALIVE, State.CREATED)
TIMES, TO = "\N{MULTIPLICATION SIGN}", "\N{EN DASH}"


@dataclass(frozen=True)
class Group:
    """Tasks of one role that share a row, by index."""

    role: str
    tasks: tuple[TaskView, ...]

    @property
    def name(self) -> str:
        return f"{self.role} {TIMES}{len(self.tasks)}"

    @property
    def states(self) -> str:
        """`38 training, 2 ready`."""
        counts: dict[str, int] = {}
        for task in self.tasks:
            counts[task.state] = counts.get(task.state, 0) + 1
        most_first = sorted(counts.items(), key=lambda pair: -pair[1])
        return ", ".join(f"{count} {state}" for state, count in most_first)

    @property
    def restarts(self) -> int:
        return sum(task.restarts for task in self.tasks)

    @property
    def speeds(self) -> tuple[float, float] | None:
        """The lowest and the highest steps per second of the tasks that report them; else None."""
        speeds = [task.shown_speed for task in self.tasks if task.shown_speed is not None]
        return (min(speeds), max(speeds)) if speeds else None

    @property
    def step(self) -> int | None:
        """The highest step that one of the tasks reported, or has made itself."""
        return max((step for t in self.tasks if (step := t.shown_step) is not None), default=None)

    @property
    def gpus(self) -> int:
        return sum(len(task.gpus) for task in self.tasks)

    @property
    def usage(self) -> Usage | None:
        """The sum over all tasks; None if no task reports its usage."""
        usages = [usage for task in self.tasks if (usage := task.shown_usage)]
        if not usages:
            return None
        return Usage(
            memory=sum(usage.memory for usage in usages),
            cpus=sum(usage.cpus or 0.0 for usage in usages),
            rx_bps=sum(usage.rx_bps or 0.0 for usage in usages),
            tx_bps=sum(usage.tx_bps or 0.0 for usage in usages),
        )


def rows_of(tasks: Sequence[TaskView], most_rows: int, leader: str) -> list[TaskView | Group]:
    """A row for each task if they fit. Otherwise the leader and each task in trouble have a row,
    and the other tasks of each role share a row."""
    if len(tasks) <= most_rows:
        return list(tasks)
    rows: list[TaskView | Group] = []
    for role in dict.fromkeys(task.role for task in tasks):
        of_role = [task for task in tasks if task.role == role]
        single = [task for task in of_role if task.name == leader or is_in_trouble(task)]
        grouped = [task for task in of_role if task not in single]
        rows += single
        rows += grouped if len(grouped) == 1 else [Group(role, tuple(grouped))] if grouped else []
    return rows


def is_in_trouble(task: TaskView) -> bool:
    """Whether a task has a problem now."""
    ended_well = task.state is State.ENDED and task.exit_code in GOOD_CODES
    ordinary = task.state in _ORDINARY or ended_well
    return (
        not ordinary
        or task.lags
        or task.is_hot
        or bool(task.gpu_problem)
        or task.exit_code not in GOOD_CODES
    )


def tasks_in(rows: Iterable[TaskView | Group]) -> int:
    """The number of tasks that these rows show."""
    return sum(len(row.tasks) if isinstance(row, Group) else 1 for row in rows)


_SCORES = {"accuracy": "accuracy", "map_50": "mAP@0.5"}
"""Scores that a task may have, and the headings of their columns."""
_STYLES = {
    State.READY: "cyan",
    State.TRAINING: "green",
    State.SCORING: "green",
    State.WAITING: "cyan",
    State.PAUSED: "yellow",
    State.RESTARTING: "yellow",
    State.ENDED: "dim",
}


_LEFT = ("task", "ip", "gpu", "state")
_USES = ("cpu", "mem", "net")
_FROM = {**dict.fromkeys(_USES, 106), "share": 112, "ip": 78, "loss": 68, "gpu": 62, "restarts": 44,
         **dict.fromkeys(_SCORES.values(), 52)}  # fmt: skip
"""Minimum width of a terminal for a column; a column without an entry is always shown."""
Cell = str | Text


def status_table(tasks: Iterable[TaskView | Group], title: str = "", width: int = 80) -> Table:
    """One row per task or group: name, IP, GPUs, state, restarts, step, steps/s, share of all
    tasks' steps, loss and scores; and its usage, if any task reports it. Columns that do not fit
    into a narrow terminal are left out.

    An evaluator's step is the last checkpoint that it has scored; that of a coordinator's worker
    counts the functions that it has finished.
    """
    tasks = list(tasks)
    steps = sum(_own_steps(task) for task in tasks)
    rows = [_of_group(task) if isinstance(task, Group) else _of_task(task) for task in tasks]
    for task, row in zip(tasks, rows, strict=True):
        if own_steps := _own_steps(task):
            row["share"] = f"{own_steps / steps:.0%}"
    filled = {heading for row in rows for heading, cell in row.items() if str(cell) != "-"}
    scores = [name for name in _SCORES.values() if name in filled] or ["accuracy"]
    uses = _USES if filled.intersection(_USES) else ()
    share = ("share",) if "share" in filled else ()
    headings = [*_LEFT, "restarts", "step", "steps/s", *share, "loss", *scores, *uses]
    shown = [heading for heading in headings if width >= _FROM.get(heading, 0)]
    table = Table(
        title=title or None, title_justify="left", box=None, pad_edge=False, padding=(0, 1, 0, 0)
    )
    for heading in shown:
        table.add_column(heading, justify="left" if heading in _LEFT else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(row.get(heading, "-") for heading in shown))
    return table


def _own_steps(task: TaskView | Group) -> int:
    """The own steps of a task, or of all tasks of a group together."""
    tasks = task.tasks if isinstance(task, Group) else (task,)
    return sum(task.all_own_steps for task in tasks)


def _of_task(task: TaskView) -> dict[str, Cell]:
    """The cells of a task by their headings."""
    return {
        "task": task.name,
        "ip": task.ip,
        "gpu": Text(_gpus(task), style="bold red" if task.gpu_problem else ""),
        "state": Text(_short_state(task), style=_style(task)),
        "restarts": str(task.restarts or "-"),
        "step": Text(task.checkpoint or _figure(task.shown_step, ".0f")),
        "steps/s": _figure(task.shown_speed, ".1f"),
        "loss": _figure(task.loss, ".4f"),
        **{name: _figure(getattr(task, score), ".4f") for score, name in _SCORES.items()},
        **_used(task.shown_usage),
    }


def _of_group(group: Group) -> dict[str, Cell]:
    """The cells of a group: `38 training, 2 ready`, and the range of its speeds."""
    low, high = group.speeds or (None, None)
    return {
        "task": group.name,
        "ip": "",
        "gpu": str(group.gpus or "-"),
        "state": group.states,
        "restarts": str(group.restarts or "-"),
        "step": _figure(group.step, ".0f"),
        "steps/s": _figure(low, ".1f") if low == high else f"{low:.1f}{TO}{high:.1f}",
        **_used(group.usage),
    }


def remarks(tasks: Iterable[TaskView]) -> list[str]:
    """The lines below the table: one for each task that has run out of memory, for each ps that
    holds the job up, for each straggler, and for each task that has other GPUs than were assigned
    to it."""
    tasks = list(tasks)
    hot = [task.hot.message for task in tasks if task.hot and task.is_hot]
    lag = [task.straggler.message for task in tasks if task.straggler and task.lags]
    starved = [
        f"{task.name} ran out of memory: raise its `memory` limit, if any"
        for task in tasks
        if task.out_of_memory
    ]
    return starved + hot + lag + [task.gpu_problem for task in tasks if task.gpu_problem]


def _gpus(task: TaskView) -> str:
    """The requested GPUs, a mark if the task has different ones, and their utilization."""
    requested = ",".join(map(without_kind, task.gpus)) or "-"
    if task.gpu_problem:
        return f"{requested} (sees {len(task.gpus_seen or ())})"
    busy = task.shown_usage.gpu_busy if task.shown_usage else None
    return requested if busy is None else f"{requested} ({busy:.0%})"


def _used(usage: Usage | None) -> dict[str, Cell]:
    """Busy CPUs, memory, and the sum of bytes per second in both directions."""
    if usage is None:
        return {}
    known = usage.rx_bps is not None and usage.tx_bps is not None
    net = f"{decimal(round((usage.rx_bps or 0) + (usage.tx_bps or 0)))}/s" if known else "-"
    return {"cpu": _figure(usage.cpus, ".2f"), "mem": decimal(round(usage.memory)), "net": net}


def _short_state(task: TaskView) -> str:
    """The state, with the exit code only after the task's end, to fit into 80 columns."""
    if task.lags:
        return "straggler"
    return f"{task.state} ({task.exit_code})" if task.state is State.ENDED else task.state


def _style(task: TaskView) -> str:
    if task.exit_code not in GOOD_CODES:
        return "bold red"
    return "yellow" if task.lags else _STYLES.get(task.state, "")


def _figure(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def line_of(container: Container) -> str:
    """A sidecar's line: its name, its address, and its state or exit code."""
    exit_code = "" if container.exit_code is None else f" (exit code {container.exit_code})"
    memory = ": out of memory" if container.oom else ""
    state = f"{State.of_engine(container.state)}{exit_code}{memory}"
    return f"sidecar {container.name} at {container.ip}: {state}"


def facts_of(container: Container) -> dict[str, Any]:
    """A sidecar's facts for JSON, as in `line_of`."""
    return {
        "name": container.name,
        "ip": container.ip,
        "state": State.of_engine(container.state),
        "exit_code": container.exit_code,
        "oom": container.oom,
    }
