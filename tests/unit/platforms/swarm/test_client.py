"""Requests to a swarm's manager, whose answers are records like those of its API."""

from __future__ import annotations

from itertools import islice
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import NotFound

from cluster_kit.platforms.engine import Action
from cluster_kit.platforms.swarm.swarm_engine import SwarmEngine
from tests.unit.platforms.swarm.records import service, task


class Manager(SwarmEngine):
    """A manager that answers with these lists of tasks in turn."""

    def __init__(self, *answers: list[dict[str, Any]]) -> None:
        self.answers_left = list(answers)
        self.asked: list[Any] = []

    def _tasks(self, filters: Any) -> list[Any]:
        self.asked.append(filters)
        return list(self.answers_left.pop(0))

    def _services(self, filters: Any) -> list[dict[str, Any]]:
        return [service("worker", 0), service("worker", 1)]

    def end(self, container_id: str) -> None:
        self.asked.append(container_id)


@pytest.fixture(autouse=True)
def no_time_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)


def test_events_say_when_the_past_is_complete() -> None:
    ended = task(1, "complete", 9, code=0)
    manager = Manager([task(1, "running", 2)], [ended])
    told = [event.action for event in islice(manager.events("demo", 0.0), 3)]
    assert told == ["start", Action.ALL_TOLD, "die"]


def test_stopping_stops_all_tasks_at_once() -> None:
    running, ended = task(1, "running", 2), task(1, "shutdown", 9, code=143)
    manager = Manager([running], [running], [ended])
    manager.stop("demo")
    assert manager.answers_left == []
    lists = [one for one in manager.asked if not isinstance(one, str)]
    assert len(lists) == 3, "the containers, and twice whether they are quiet"
    assert len(manager.asked) == 3 + 2, "each service is ended"


class Networks:
    """The part of a manager's API that lists networks: one of this run, without a subnet."""

    def __init__(self, config: list[dict[str, str]] | None) -> None:
        self._config = config

    def networks(self, filters: dict[str, str]) -> list[dict[str, Any]]:
        assert "driver" not in filters, "one without a subnet has no driver"
        assert filters["scope"] == "swarm"
        return [{"Id": "n1", "IPAM": {"Driver": "", "Config": self._config}}]


@pytest.mark.parametrize(("config", "lacks"), [(None, True), ([{"Subnet": "10.0.0.0/24"}], False)])
def test_a_network_without_a_subnet(config: list[dict[str, str]] | None, lacks: bool) -> None:
    manager = Manager()
    manager._client = SimpleNamespace(api=Networks(config))
    assert manager.lacks_subnet("demo", "1") is lacks


class Vanishing:
    """Containers that the swarm is removing: whoever inspects one is told that it is gone."""

    def list(self, **_: Any) -> None:
        raise NotFound("No such container: c1")


def test_a_container_that_the_swarm_removes_meanwhile_is_no_error() -> None:
    """`up` ended with an error after a training that had succeeded."""
    gone = [[{"Id": "c1"}], []]
    nothing = SimpleNamespace(
        containers=lambda **_: gone.pop(0), networks=lambda **_: [], configs=lambda **_: [],
        secrets=lambda **_: [],
    )  # fmt: skip
    manager = Manager()
    manager._client = SimpleNamespace(api=nothing, containers=Vanishing())
    assert manager._remove_rest("demo", {}) is False
    assert manager._remove_rest("demo", {}) is True


@pytest.mark.parametrize(
    ("ours", "waiting"),
    [
        ([], ["worker-0", "worker-1"]),
        ([task(1, "preparing", 1)], ["worker-0", "worker-1"]),
        (
            [task(1, "rejected", 1, err="No such image"), task(2, "preparing", 2)],
            ["worker-0", "worker-1"],
        ),
        ([task(1, "rejected", 1, err="No such image"), task(2, "running", 3)], ["worker-1"]),
        ([task(1, "failed", 1, code=1), task(2, "preparing", 2)], ["worker-1"]),
    ],
)
def test_a_task_waits_until_a_node_has_run_it(
    ours: list[dict[str, Any]], waiting: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = Manager(ours)
    monkeypatch.setattr(manager, "nodes", dict)
    assert manager.not_started("demo", "1") == (waiting, {})
