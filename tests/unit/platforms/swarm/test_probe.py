"""A probe container on every node: its answers, and that no container is left."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from docker.errors import APIError

from cluster_kit.errors import EngineError
from cluster_kit.platforms.swarm import swarm_engine
from cluster_kit.platforms.swarm.swarm_engine import NodeSaid, Probe, run_on_each_node
from cluster_kit.resolved import Mount

ASKED = Probe("probe-1", "demo:1", "7:7", "true", (Mount("/runs", "/probe", read_only=False),))


class Api:
    """A swarm with these tasks, one list after the other; the last one stays."""

    def __init__(self, *told: list[dict[str, Any]]) -> None:
        self.told = list(told)
        self.made: list[Any] = []
        self.removed = 0
        self.left = 2
        self.others: dict[str, str] = {}
        """When each service of other probes was created, by its id."""

    def services(self, filters: dict[str, str]) -> list[dict[str, Any]]:
        assert filters == {"label": swarm_engine.PROBE}
        return [{"ID": one, "CreatedAt": at} for one, at in self.others.items()]

    def create_service(self, template: Any, **named: Any) -> dict[str, str]:
        self.made.append((template, named))
        return {"ID": "s"}

    def tasks(self, filters: dict[str, str]) -> list[dict[str, Any]]:
        if "label" in filters:
            assert self.removed and filters["label"].endswith("=probe-1")
            self.left -= 1
            return [{}] * max(0, self.left)
        return self.told.pop(0) if len(self.told) > 1 else self.told[0]

    def remove_service(self, service: str) -> None:
        if service in self.others:
            del self.others[service]
        else:
            assert service == "s"
            self.removed += 1


def task(node: str, state: str, code: int | None = None, err: str = "") -> dict[str, Any]:
    status: dict[str, Any] = {"State": state, "Err": err}
    if code is not None:
        status["ContainerStatus"] = {"ExitCode": code}
    return {"NodeID": node, "Status": status}


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each sleep returns at once."""
    now = [0.0]
    monkeypatch.setattr(swarm_engine.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(swarm_engine.time, "sleep", lambda s: now.__setitem__(0, now[0] + s))


def test_it_waits_for_every_node_and_removes_what_it_created() -> None:
    ended = [task("b", "failed", 1, "task: non-zero exit (1)"), task("a", "complete", 0),
             task("c", "rejected", err="No such image: demo:1")]  # fmt: skip
    api = Api([], [task("a", "complete", 0), task("b", "running")], ended)
    assert run_on_each_node(api, ASKED, 30.0) == [
        NodeSaid("a", 0),
        NodeSaid("b", 1, "task: non-zero exit (1)"),
        NodeSaid("c", None, "No such image: demo:1"),
    ]
    assert (api.removed, api.left) == (1, 0)
    ((template, named),) = api.made
    container = template["ContainerSpec"]
    assert named["mode"] == {"global": {}} and template["RestartPolicy"]["Condition"] == "none"
    assert (container["Image"], container["User"]) == ("demo:1", "7:7")
    (mount,) = container["Mounts"]
    assert (mount["Source"], mount["Target"], mount["ReadOnly"]) == ("/runs", "/probe", False)


def test_remains_of_an_ended_command_are_removed_and_those_of_a_running_one_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    api = Api([task("a", "complete", 0)])
    api.others = {"old": "2026-11-23T10:00:00.5Z", "new": "2026-11-23T10:09:00.5Z"}
    now = datetime(2026, 11, 23, 10, 10, 30, tzinfo=UTC).timestamp()
    monkeypatch.setattr(swarm_engine.time, "time", lambda: now)
    assert run_on_each_node(api, ASKED, 5.0) == [NodeSaid("a", 0)]
    assert list(api.others) == ["new"]
    ((_, named),) = api.made
    assert swarm_engine.PROBE in named["labels"]


def test_a_node_that_does_not_answer_is_not_waited_for_forever() -> None:
    api = Api([task("a", "complete", 0), task("b", "preparing")])
    assert run_on_each_node(api, ASKED, 5.0) == [NodeSaid("a", 0)]
    assert api.removed == 1


def test_a_swarm_that_does_not_answer_is_an_error_and_nothing_is_left() -> None:
    api = Api([])

    def refuse(filters: dict[str, str]) -> list[dict[str, Any]]:
        if "label" in filters:
            return []
        raise APIError("quota")

    api.tasks = refuse  # type: ignore[method-assign]
    with pytest.raises(EngineError, match="quota"):
        run_on_each_node(api, ASKED, 5.0)
    assert api.removed == 1


def test_a_lost_engine_is_an_engine_error() -> None:
    api = Api([])

    def gone(*_given: Any, **_named: Any) -> Any:
        raise ConnectionError("refused")

    api.tasks = api.remove_service = gone  # type: ignore[method-assign]
    with pytest.raises(EngineError, match="does not answer: refused"):
        run_on_each_node(api, ASKED, 5.0)
