"""A view that records everything, and compares what it shows with `status`."""

from __future__ import annotations

from cluster_kit.observe import user_requests
from cluster_kit.observe.progress import entries_of
from cluster_kit.observe.reconcile import from_containers
from cluster_kit.observe.state import RunState
from cluster_kit.observe.task_view import TaskView
from cluster_kit.platforms.engine import Container
from tests.fakes.engine import FakeEngine


class RecordingView:
    """`phases`, `warnings` and `lines` in order; `differences` are the moments at which the live
    table and `status` differed."""

    draws = True

    def __init__(self, engine: FakeEngine, cluster: str) -> None:
        self._engine = engine
        self._cluster = cluster
        self.phases: list[str] = []
        self.warnings: list[str] = []
        self.lines: list[tuple[str, str]] = []
        self.states: dict[str, list[str]] = {}
        self.updates = 0
        self.differences: list[tuple[TaskView, TaskView]] = []
        self._compared: tuple[RunState, list[Container]] | None = None

    def count_from(self, began: float) -> None:
        pass

    def phase(self, text: str) -> None:
        self.phases.append(text)

    def note(self, text: str) -> None:
        self.phases.append(text)

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    def update(self, seen: RunState) -> None:
        self.updates += 1
        for task in seen.tasks.values():
            states = self.states.setdefault(task.name, [])
            if not states or states[-1] != task.state:
                states.append(str(task.state))
        containers = self._engine.seen(self._cluster)
        if (seen, containers) == self._compared:
            return
        self._compared = seen, containers
        standing = {
            t.name: t
            for t in from_containers(
                containers, entries_of(containers), requests=user_requests.of_containers(containers)
            )
        }
        for task in seen.tasks.values():
            if task.name in standing and standing[task.name] != task:
                self.differences.append((task, standing[task.name]))

    def log(self, task: str, line: str) -> None:
        self.lines.append((task, line))

    def close(self) -> None:
        pass
