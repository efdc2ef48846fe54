"""Stopping and removing containers in every state, with a simulated SDK."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import APIError, NotFound

from cluster_kit.errors import EngineError
from cluster_kit.platforms.docker.docker_engine import DockerEngine
from tests.unit.platforms.docker.test_client import connected


class Thing:
    """A container or a network of the SDK that records what was done to it."""

    def __init__(
        self, status: str = "", error: Exception | None = None, id: str = "", joins: str = "",
        kind: str = "cluster",
    ) -> None:  # fmt: skip
        self.id, self.kind = id, "helper" if joins else kind
        self.attrs: dict[str, Any] = {
            "HostConfig": {"NetworkMode": f"container:{joins}", "PidMode": ""}
        }
        self.name, self.status, self.done = "demo_cluster", status, []
        self._error = error

    def reload(self) -> None:
        pass

    def unpause(self) -> None:
        self.done.append("unpause")
        if self._error:
            raise self._error

    def stop(self) -> None:
        self.done.append("stop")

    def remove(self, **_: object) -> None:
        self.done.append("remove")
        if self._error:
            raise self._error


def holding(containers: list[Thing], networks: list[Thing]) -> DockerEngine:
    return connected(
        SimpleNamespace(
            containers=SimpleNamespace(
                list=lambda filters, **_: [
                    c for c in containers if f"cluster-kit.{c.kind}=" in str(filters)
                ]
            ),
            networks=SimpleNamespace(list=lambda **_: networks),
        )
    )


def test_removing_stops_running_containers_and_ignores_missing_ones() -> None:
    runs, ended = Thing("running"), Thing("exited", NotFound("gone"))
    network = Thing(error=NotFound("gone"))
    assert holding([runs, ended], [network]).remove("demo") == 2
    assert (runs.done, ended.done, network.done) == (["stop", "remove"], ["remove"], ["remove"])


def test_a_helper_that_the_engine_is_removing_counts_as_removed() -> None:
    words = "removal of container e77e9 is already in progress"
    ends = Thing("running", APIError(words), joins="a")
    assert holding([Thing("running", id="a"), ends], []).remove("demo") == 1
    with pytest.raises(EngineError, match="refused"):
        holding([Thing("running", APIError("refused"))], []).remove("demo")


def test_helpers_are_removed_with_their_containers() -> None:
    task = Thing("running", id="a")
    helper, of_another_run = Thing("running", joins="a"), Thing("running", joins="b")
    assert holding([task, helper, of_another_run], []).remove("demo", "run 1") == 1
    assert (helper.done, of_another_run.done) == (["stop", "remove"], [])
    assert holding([task, helper, of_another_run], []).remove("demo") == 1
    assert of_another_run.done == ["stop", "remove"]


def test_the_tensorboard_that_started_with_a_cluster_is_removed_with_it() -> None:
    board = Thing("running", kind="tensorboard.cluster")
    assert holding([Thing("running"), board], []).remove("demo", "run 1") == 1
    assert board.done == ["stop", "remove"]


def test_a_network_in_use_is_named_with_its_users_and_a_hint() -> None:
    network = Thing(error=APIError("has active endpoints"))
    with pytest.raises(EngineError, match="demo_cluster cannot be removed: has active") as caught:
        holding([], [network]).remove("demo")
    assert "`docker network inspect demo_cluster`" in caught.value.hint
    network.attrs["Containers"] = {"1": {"Name": "web"}, "2": {"Name": "db"}}
    with pytest.raises(EngineError, match="demo_cluster cannot be removed: still used by db, web"):
        holding([], [network]).remove("demo")
    network.attrs["Containers"].pop("2")
    with pytest.raises(EngineError, match="removed: still used by web") as caught:
        holding([], [network]).remove("demo")
    assert caught.value.hint.endswith("it: `docker network disconnect demo_cluster web`")


def test_stopping_does_not_change_ended_containers() -> None:
    things = [Thing(status) for status in ("running", "restarting", "paused", "exited", "created")]
    holding(things, []).stop("demo")
    stopped = [["stop"], ["stop"], ["unpause", "stop"], [], []]
    assert [thing.done for thing in things] == stopped


def test_a_frozen_container_is_thawed_so_that_it_receives_sigterm() -> None:
    thawed_meanwhile = Thing("paused", APIError("Container demo-ps-0 is not paused"))
    holding([thawed_meanwhile], []).stop("demo")
    assert thawed_meanwhile.done == ["unpause", "stop"]
