"""A simulated run that continues: its directory, which grows, and its engine."""

from __future__ import annotations

import json
import queue
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from cluster_kit.errors import EngineError
from cluster_kit.host import Moment
from cluster_kit.platforms.engine import SIDECAR, Container, ContainerSummary, Event, Subscription
from cluster_kit.resolved import Cluster
from cluster_kit.run.run_directory import Record, write_record
from cluster_kit.serve.site import Site
from cluster_kit.workspace import RunDirectory, Workspace, new_run
from tests.fakes.hosts import fake_host
from tests.make import cluster as made

BEGAN = 1000.0
NOW = datetime(2026, 11, 22, 10, 15)


class MadeUp:
    """An engine with one cluster, and the workspace of its runs."""

    def __init__(self, root: Path, cluster: Cluster | None = None, id_: str = "run-1") -> None:
        self.cluster = cluster or made(worker=2, ps=1, evaluator=1)
        self.workspace = Workspace(root)
        self.site = Site(self.workspace, fake_host(lambda: self), control=True)
        self.states: dict[str, str] = {}
        self.lost = False
        self.asked: list[str] = []
        self.done: list[tuple[str, str]] = []
        self.secrets: tuple[str, ...] = ()
        self._heard: list[queue.Queue[Event | None]] = []
        self._is_over = False
        self.said: dict[str, list[str]] = {}
        self.history: list[Event] = []
        if id_:
            self.new_run(id_)

    @classmethod
    def of(cls, root: Path, cluster: Cluster, run: str) -> MadeUp:
        """Returns the same with a run that another process creates and writes."""
        made = cls(root, cluster, "")
        made.id, made.run = "run-1", RunDirectory(made.workspace.runs(cluster.name) / run)
        made.states = {task.name: "running" for task in cluster.tasks}
        return made

    def new_run(self, id_: str, *, up: bool = True) -> RunDirectory:
        """Start the next run of the cluster, which is up from then on."""
        self.id = id_
        self.run = new_run(self.workspace.runs(self.cluster.name), NOW)
        record = Record(id_, self.cluster, Moment(0.0, 0.0, ""), BEGAN, {}, {})
        write_record(self.run, record)
        self.history = []
        self.states = {task.name: "running" for task in self.cluster.tasks} if up else {}
        return self.run

    def say(self, task: str, time: float, event: str, **fields: Any) -> None:
        self._write(f"{task}.jsonl", {"time": BEGAN + time, "event": event, **fields})

    def use(self, task: str, time: float, **fields: Any) -> None:
        usual = {"cpu_s": time, "memory": 1e6, "rx_bytes": time * 1e3, "tx_bytes": time * 2e3}
        self._write(f"{task}.usage", {"time": BEGAN + time, "event": "usage", **usual, **fields})

    def _write(self, name: str, entry: dict[str, Any]) -> None:
        with (self.run.progress / name).open("a") as file:
            file.write(json.dumps(entry) + "\n")

    def happens(self, task: str, time: float, action: str, code: int | None = None) -> None:
        """Add an event of the engine."""
        event = Event(BEGAN + time, action, task, code)
        self.history.append(event)
        for heard in self._heard:
            heard.put(event)
        states = {"die": "exited", "start": "running", "pause": "paused", "unpause": "running"}
        self.states[task] = states.get(action, self.states.get(task, ""))

    def begin(self) -> None:
        for task in self.cluster.tasks:
            self.happens(task.name, 0.0, "start")

    def over(self, *, success: bool = True, reason: str = "failed") -> None:
        """End the run; its containers are removed."""
        self.states = {}
        reason, message = ("finished", "") if success else (reason, "it broke")
        facts = {"id": self.id, "success": success, "reason": reason, "message": message,
                 "tasks": [], "metrics": {"a": 1}}  # fmt: skip
        for task in self.cluster.tasks:
            (self.run.logs / f"{task.name}.log").write_text(
                "".join(f"2026-11-22T10:15:0{at % 10}Z {line}\n"
                        for at, line in enumerate(self.said.get(task.name, ["saved"])))
            )  # fmt: skip
        lines = (json.dumps(event.__dict__) + "\n" for event in self.history)
        (self.run.path / "events.jsonl").write_text("".join(lines))
        self.run.outcome.write_text(json.dumps(facts))

    def finish(self) -> None:
        """End the test: stop all listeners to events."""
        self._is_over = True
        for heard in self._heard:
            heard.put(None)

    # The questions that the server asks an engine.

    def glance(self) -> list[ContainerSummary]:
        self._asked("glance")
        return [
            ContainerSummary(
                id=f"id-{self.id}-{name}",
                cluster=self.cluster.name,
                run=self.id,
                name=name,
                role=name.rpartition("-")[0],
                state=state,
                output=str(self.run.output),
            )
            for name, state in self.states.items()
        ]

    def clusters(self) -> list[str]:
        return [self.cluster.name] if self.states else []

    def containers(self, _cluster: str, _run: str = "") -> list[Container]:
        self._asked("containers")
        return [
            Container(
                id=f"id-{self.id}-{task.name}", cluster=self.cluster.name, name=task.name,
                role=task.role, index=task.index, leader=task.name == self.cluster.leader.name,
                ip=str(task.ip), gpus=(), state=self.states[task.name], exit_code=None, restarts=0,
                oom=False, created=BEGAN, started=BEGAN, finished=0.0, output=str(self.run.output),
                secrets=self.secrets,
            )
            for task in self.cluster.tasks
            if task.name in self.states
        ]  # fmt: skip

    def sidecars(self, _cluster: str, _run: str = "") -> list[Container]:
        return [one for one in self.containers("") if one.role == SIDECAR]

    def events(
        self, _cluster: str, _since: float, _run: str = "", until: Subscription | None = None
    ) -> Iterator[Event]:
        self._asked("events")
        heard: queue.Queue[Event | None] = queue.Queue()
        (until or Subscription()).ends_by(lambda: heard.put(None))
        for event in self.history:
            heard.put(event)
        self._heard.append(heard)
        if self._is_over:
            heard.put(None)
        while (event := heard.get()) is not None:
            yield event

    def follow(
        self, id_: str, _since: float | None = None, *, times: bool = False
    ) -> Iterator[str]:
        self._asked("follow")
        name = id_.removeprefix(f"id-{self.id}-")
        for at, line in enumerate(self.said.get(name, ())):
            yield f"2026-11-22T10:15:{at % 60:02}.0Z {line}" if times else line

    def comes_back(self, _id: str, _within: float) -> bool:
        return False

    def freeze(self, id_: str) -> None:
        self._do("freeze", id_)
        self.happens(id_.removeprefix(f"id-{self.id}-"), 50.0, "pause")

    def thaw(self, id_: str) -> None:
        self._do("thaw", id_)
        self.happens(id_.removeprefix(f"id-{self.id}-"), 51.0, "unpause")

    def end(self, id_: str) -> None:
        self._do("end", id_)

    def execute(self, id_: str, command: Sequence[str]) -> None:
        self._do(command[-1], id_)

    def _do(self, what: str, id_: str) -> None:
        self._asked(what)
        self.done.append((what, id_.removeprefix(f"id-{self.id}-")))

    def _asked(self, what: str) -> None:
        self.asked.append(what)
        if self.lost:
            raise EngineError("the engine is gone", "start it")
