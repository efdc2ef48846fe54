"""Logs of tasks on other machines, followed by repeated queries."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from cluster_kit.platforms.engine import PolledLogs
from cluster_kit.platforms.kubernetes.kubernetes_engine import PodLogs
from cluster_kit.platforms.swarm.swarm_engine import SwarmLogs
from tests.unit.platforms.swarm.records import service, task

SAID = (
    "2026-11-22T12:00:01Z step 1: \r 10% \r 20%\r100%\n"
    "2026-11-22T12:00:02Z \n"
    "2026-11-22T12:00:03Z page\x0cbreak\u2028done\n"
)
POD = {
    "metadata": {
        "name": "pod-1",
        "creationTimestamp": "2026-11-22T12:00:00Z",
        "labels": {"batch.kubernetes.io/job-name": "s-worker"},
    },
    "status": {"phase": "Succeeded"},
}


class Manager(SwarmLogs):
    """A swarm whose task has printed this, and has ended."""

    def __init__(self) -> None:
        self._client = SimpleNamespace(
            api=SimpleNamespace(inspect_service=lambda _id: service("worker", 0))
        )

    def _tasks(self, filters: Any) -> list[Any]:
        return [task(1, "complete", 9, code=0)]

    def _raw_logs(self, task: str, wanted: dict[str, Any]) -> bytes:
        return SAID.encode()


class Pods(PodLogs):
    """Kubernetes, whose pod has printed this, and has ended."""

    def __init__(self) -> None:
        self._kept = {}
        self._api = SimpleNamespace(  # type: ignore[assignment]
            of=lambda *_names: "pods",
            items=lambda *_asked: [POD],
            text=lambda _path, **_wanted: SAID,
        )


@pytest.mark.parametrize(
    ("engine", "name"), [(Manager(), "s-worker-0"), (Pods(), "s-worker/0")], ids=["swarm", "pods"]
)
def test_a_progress_bar_is_one_line(engine: PolledLogs, name: str) -> None:
    lines = SAID.split("\n")[:-1]
    assert list(engine.follow(name, times=True)) == lines
    assert [line.partition(" ")[2] for line in lines] == list(engine.follow(name))
    assert list(engine.follow(name, 1795348802.0)) == ["page\x0cbreak\u2028done"]
    assert list(engine.lines(name)) == SAID.split("\n")[:-1]
