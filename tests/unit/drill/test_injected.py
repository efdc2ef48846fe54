"""The effect of each kind of fault on an engine in memory, and how it ends."""

from __future__ import annotations

from typing import Any

import pytest

from cluster_kit.drill.injector import TELL
from cluster_kit.errors import HostError
from tests.fakes.stage import Stage
from tests.unit.drill.played import fault, played


def test_a_cut_and_a_slow_task_are_undone_in_time(stage: Stage) -> None:
    calls: list[tuple[str, float]] = []
    stage.engine.on_call = lambda name: calls.append((name, stage.clock.time()))
    text = fault("cut", "worker-1", "step = 10", 'for = "2s"') + fault(
        "slow", "worker-0", "step = 10", "cpus = 0.25", "for = 1"
    )
    assert played(stage, text, role={"worker": {"cpus": 1.5}}).passed
    times = {name: moment for name, moment in calls if name in ("detach", "attach")}
    assert times["attach"] - times["detach"] == pytest.approx(2.0, abs=0.3)
    assert stage.engine.cpus == [("worker-0", 0.25), ("worker-0", 1.5)]


def test_a_slow_task_without_a_limit_can_use_the_whole_host_again(stage: Stage) -> None:
    played(stage, fault("slow", "worker-0", "step = 10", "for = 1"))
    assert stage.engine.cpus == [("worker-0", 0.1), ("worker-0", 64.0)]


@pytest.mark.parametrize(("limit", "lowered", "usual"), [
    ({}, 564 << 20, 2**38),
    ({"role": {"worker": {"memory": "2g"}}}, 564 << 20, 2 << 30),
    ({"role": {"worker": {"memory": "512m"}}}, 512 << 20, 512 << 20),
])  # fmt: skip
def test_a_task_is_killed_for_its_memory_and_restarts_with_its_limit(
    stage: Stage, limit: Any, lowered: int, usual: int
) -> None:
    moments: list[tuple[str, float]] = []
    stage.engine.on_call = lambda name: moments.append((name, stage.clock.time()))
    done = played(stage, fault("memory", "worker-1", "step = 30"), **limit)
    (result,) = done.results
    assert done.passed, done.misses
    assert (result.detected_by, result.restarts, result.steps_lost) == ("oom", 1, 0)
    assert stage.engine.memory == [("worker-1", lowered, False), ("worker-1", usual, True)]
    low, back = (moment for name, moment in moments if name == "limit_memory")
    assert back - low < 0.3
    note = "worker-1 ran out of memory (raise its `memory` limit, if any), and was started again"
    assert done.outcome.notes == [note]
    assert done.outcome.tasks[2].oom


def test_an_engine_that_cannot_limit_memory_kills_no_task_and_this_is_reported(
    stage: Stage,
) -> None:
    stage.engine.heeds_limits = False
    done = played(stage, fault("memory", "worker-1", "step = 30"))
    (miss,) = done.misses
    assert "was not injected: nothing was killed for its memory: 564 MiB were taken" in miss
    assert stage.engine.memory[-1] == ("worker-1", 2**38, True)


def test_faults_from_helpers_are_tested_first_and_keep_their_time_themselves(stage: Stage) -> None:
    text = fault("delay", "worker-0", "step = 10", "for = 1") + fault(
        "cut", "worker-1", "step = 10", 'from = ["ps-0"]', "for = 1"
    )
    done = played(stage, text)
    assert done.passed, done.misses
    trial, delay, cut = stage.engine.helpers
    assert trial.network_of == "" and delay.network_of.endswith("worker-0")
    assert cut.network_of.endswith("worker-1") and '"loss": 1.0' in cut.command[-1]
    assert done.facts()["faults"][1]["from"] == ["ps-0"]


def test_faults_that_this_host_cannot_inject_are_reported_before_anything_starts(
    stage: Stage,
) -> None:
    stage.engine.helper_says = "Operation not permitted"
    with pytest.raises(HostError, match=r"delay: Operation not permitted"):
        played(stage, fault("delay", "worker-0", "step = 10", "for = 1"))
    assert not stage.ran and stage.is_clean()


def test_a_failed_helper_is_retried_once_a_second(stage: Stage) -> None:
    def fail_once_started(name: str) -> None:
        if name == "containers" and stage.ran:
            stage.engine.helper_says = "Device or resource busy"

    stage.engine.on_call = fail_once_started
    done = played(stage, fault("loss", "worker-0", "step = 10", "for = 1"))
    (miss,) = done.misses
    assert miss.endswith("was not injected: loss is not possible: Device or resource busy")
    assert 5 <= len(stage.engine.helpers) <= 11


def test_a_stopped_follower_restarts_and_a_stopped_leader_ends_the_job(stage: Stage) -> None:
    done = played(stage, fault("stop", "worker-1", "step = 20", "grace = 2"))
    assert done.passed and done.results[0].restarts == 1
    assert stage.engine.executed == [("worker-1", f"{TELL}; sleep 2; kill -9 -1")]
    text = fault("stop", "chief-0", "step = 20") + '[expect]\nreason = "stopped"'
    assert played(stage, text).passed
