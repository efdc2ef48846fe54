"""Two clusters that start at the same moment never get the same GPU."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from cluster_kit import labels
from cluster_kit.errors import HostError, ManifestError
from cluster_kit.run import start
from cluster_kit.run.start import turn
from tests.fakes.hosts import Machine
from tests.fakes.stage import Stage
from tests.make import cluster, gpus, host


@pytest.fixture
def four(stage: Stage, machine: Machine) -> Stage:
    """A host with four GPUs."""
    machine.has(gpus(4))
    return stage


def takes(stage: Stage, devices: str) -> None:
    """Let another cluster start with these GPUs after the plan, while the image is looked up."""

    def other(name: str) -> None:
        if name == "image inspect" and "other" not in {
            b.cluster for b in stage.engine.boxes.values()
        }:
            marks = {labels.CLUSTER: "other", labels.GPUS: devices}
            box = stage.engine.create("worker-0", {"labels": marks}, "")
            box.state = "running"

    stage.docker.on_call = other


def test_gpus_in_use_since_the_plan_are_not_assigned(four: Stage) -> None:
    takes(four, "0,1")
    outcome = four.up(gpus="auto")
    assert outcome.success
    found = {task.name: task.gpu for task in outcome.tasks if task.gpu}
    assert found == {"worker-0": ["2"], "worker-1": ["3"]}
    assert f"{labels.GPUS}: '3'" in four.docker.ups[-1].read_text()


def test_too_few_free_gpus_end_the_start(four: Stage) -> None:
    takes(four, "0,1,2")
    with pytest.raises(ManifestError, match="0 is other's"):
        four.up(gpus="auto")
    assert four.docker.ups == []


def test_one_start_waits_for_the_other(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = cluster(host(gpus=gpus(2)), gpus="auto", worker=2)
    order, first_is_in, next_asks = [], threading.Event(), threading.Event()

    def first() -> None:
        with turn(stage.host, stage.engine, made):
            first_is_in.set()
            assert next_asks.wait(30)
            threading.Event().wait(0.1)
            order.append("first")

    thread = threading.Thread(target=first)
    thread.start()
    assert first_is_in.wait(20)
    with turn(stage.host, stage.engine, cluster(host())):
        order.append("a cluster without GPUs")
    next_asks.set()
    with turn(stage.host, stage.engine, made):
        order.append("second")
    thread.join()
    assert order == ["a cluster without GPUs", "first", "second"]


def test_a_start_that_waits_too_long_is_reported(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start, "WAIT_S", 0.1)
    made = cluster(host(gpus=gpus(2)), gpus="auto", worker=2)
    with (
        turn(stage.host, stage.engine, made),
        pytest.raises(HostError) as error,
        turn(stage.host, stage.engine, made),
    ):
        pass
    assert "GPUs have been handed out by process" in error.value.message
    assert "(demo)" in error.value.message


def test_a_lock_that_cannot_be_written_is_reported(
    stage: Stage, tmp_path: Path, machine: Machine
) -> None:
    machine.locks_in(tmp_path / "nowhere")
    made = cluster(host(gpus=gpus(2)), gpus="auto", worker=2)
    with pytest.raises(HostError, match="cannot be made"), turn(stage.host, stage.engine, made):
        pass
