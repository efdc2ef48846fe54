"""Events of a cluster, added step by step; and containers as the engine lists them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cluster_kit.observe.state import RunState
from cluster_kit.platforms.engine import Container, Event
from cluster_kit.resolved import Cluster
from tests.entries import as_entry
from tests.make import cluster

CLUSTER = cluster(evaluator=1)
WITHOUT_CHIEF = cluster(chief=0, ps=0, worker=2)


@dataclass(frozen=True)
class Story:
    """The state of a cluster, built from events."""

    seen: RunState

    @classmethod
    def of(cls, told: Cluster = CLUSTER) -> Story:
        story = cls(RunState.of(told))
        for task in told.tasks:
            story = story.start(0.0, task.name)
        return story.says(0.5, told.leader.name, "start", attempt=1)

    def _event(self, time: float, action: str, task: str, code: int | None) -> Story:
        return Story(self.seen.with_event(Event(time, action, task, code)))

    def start(self, time: float, task: str) -> Story:
        return self._event(time, "start", task, None)

    def dies(self, time: float, task: str, code: int) -> Story:
        return self._event(time, "die", task, code)

    def stopped_from_outside(self, time: float, task: str, code: int = 143) -> Story:
        return self._event(time, "kill", task, None).dies(time + 0.1, task, code)

    def oom(self, time: float, task: str) -> Story:
        return self._event(time, "oom", task, None)

    def starves(self, time: float, task: str, times: int) -> Story:
        """It runs out of memory, and is started again each time but the last."""
        story = self.oom(time, task).dies(time + 0.1, task, 137)
        for _ in range(times - 1):
            story = story.start(time + 0.2, task)
            story = story.oom(time + 0.3, task).dies(time + 0.4, task, 137)
            time += 0.5
        return story

    def says(self, time: float, task: str, event: str, **fields: Any) -> Story:
        return Story(self.seen.with_entry(as_entry(task, time, event, fields)))

    def uses(self, time: float, task: str, cpu_s: float, memory: int, sent: int) -> Story:
        fields = {"cpu_s": cpu_s, "memory": memory, "rx_bytes": 0, "tx_bytes": sent}
        return Story(self.seen.with_usage(as_entry(task, time, "usage", fields)))

    def ends(
        self,
        time: float,
        task: str,
        code: int,
        reason: str,
        message: str = "",
        *tasks: str,
        after_job: bool = False,
    ) -> Story:
        fields = {"exit_code": code, "reason": reason, "message": message, "tasks": list(tasks)}
        fields["after_job"] = after_job
        return self.says(time, task, "end", **fields).dies(time + 0.01, task, code)

    def servers_end(self, time: float) -> Story:
        story = self
        for task in ("worker-0", "worker-1", "ps-0", "ps-1"):
            story = story.ends(time, task, 0, "finished")
        return story


def chief_succeeds(story: Story, time: float = 60.0) -> Story:
    return story.ends(time, "chief-0", 0, "finished").servers_end(time + 0.2)


def evaluator_ends(story: Story, time: float = 61.0) -> Story:
    return story.ends(time, "evaluator-0", 0, "finished")


UNAVAILABLE = "UnavailableError: failed to connect to all addresses"


def container(name: str, **different: Any) -> Container:
    role, _, index = name.rpartition("-")
    usual = {
        "id": "f" * 12, "cluster": "demo", "name": name, "role": role, "index": int(index),
        "leader": name == "chief-0", "ip": "172.28.0.9", "gpus": ("1",), "state": "exited",
        "exit_code": 137, "restarts": 0, "oom": True, "created": 0.0, "started": 0.5,
        "finished": 9.0, "output": "/out",
    }  # fmt: skip
    return Container(**{**usual, **different})
