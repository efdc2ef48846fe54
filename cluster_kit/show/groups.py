"""Rows for more tasks than fit: those of a role that are as they should be share one. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cluster_kit.observe.task_view import GOOD_CODES, State, TaskView
from cluster_kit.observe.usage import Usage

_ORDINARY = (State.READY, State.TRAINING, State.SCORING, State.RUNNING, State.CREATED)
TIMES, TO = "\N{MULTIPLICATION SIGN}", "\N{EN DASH}"


@dataclass(frozen=True)
class Group:
    """Tasks of one role that need no row of their own, by index."""

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
        """The slowest and the fastest of those that tell their steps per second."""
        told = [task.steps_per_s for task in self.tasks if task.steps_per_s is not None]
        return (min(told), max(told)) if told else None

    @property
    def step(self) -> int | None:
        """The newest that one of them told."""
        return max((task.step for task in self.tasks if task.step is not None), default=None)

    @property
    def gpus(self) -> int:
        return sum(len(task.gpus) for task in self.tasks)

    @property
    def usage(self) -> Usage | None:
        """Of all together."""
        told = [task.usage for task in self.tasks if task.usage]
        if not told:
            return None
        return Usage(
            memory=sum(one.memory for one in told),
            cpus=sum(one.cpus or 0.0 for one in told),
            rx_bps=sum(one.rx_bps or 0.0 for one in told),
            tx_bps=sum(one.tx_bps or 0.0 for one in told),
        )


def rows_of(tasks: Sequence[TaskView], room: int, leader: str) -> list[TaskView | Group]:
    """A row for each task if they fit; else the leader and whoever is in trouble have their own,
    and the others of each role share one."""
    if len(tasks) <= room:
        return list(tasks)
    rows: list[TaskView | Group] = []
    for role in dict.fromkeys(task.role for task in tasks):
        of_role = [task for task in tasks if task.role == role]
        own = [task for task in of_role if task.name == leader or is_in_trouble(task)]
        rest = [task for task in of_role if task not in own]
        rows += own
        rows += rest if len(rest) == 1 else [Group(role, tuple(rest))] if rest else []
    return rows


def is_in_trouble(task: TaskView) -> bool:
    """Whether a task is not as it should be now."""
    ended_well = task.state is State.ENDED and task.exit_code in GOOD_CODES
    ordinary = task.state in _ORDINARY or ended_well
    return not ordinary or task.lags or bool(task.gpu_problem) or task.exit_code not in GOOD_CODES


def tasks_in(rows: Iterable[TaskView | Group]) -> int:
    """How many tasks these rows stand for."""
    return sum(len(row.tasks) if isinstance(row, Group) else 1 for row in rows)
