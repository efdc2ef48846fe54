"""The metrics of a run, from its directory: while it continues, and at its end."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import pytest

from cluster_kit.workspace import RunDirectory
from tests.make import cluster
from tests.unit.metrics.runs import (
    CLUSTER,
    begun,
    ends,
    read,
    says,
    trains,
    uses,
)


def test_a_run_that_continues(run: RunDirectory) -> None:
    trains(run)
    now = read(run)
    assert now("run_up") == 1 and now("run_success") is None and now("run_exit_code") is None
    assert now("run_start_time_seconds") == 1000 and now("run_duration_seconds") == 10
    assert now("run_target_steps") == 360 and now("run_retries_total") == 0
    assert now.all("task_up") == [1] * 5
    assert now.states("chief-0") == ["training"] and now.states("ps-0") == ["ready"]
    assert now.states("evaluator-0") == ["scoring"] and now.states("worker-0") == ["running"]
    assert now("task_steps_total", task="chief-0") == now("task_step", task="chief-0") == 60
    assert now("task_steps_per_second", task="chief-0") == 10.5
    assert now("task_loss", task="chief-0") == 0.4 and now("task_loss", task="evaluator-0") == 0.3
    assert now("task_accuracy_ratio", task="chief-0") == 0.9
    assert now("task_epoch", task="chief-0") == 1
    assert now("task_staleness_updates", task="chief-0") == 0.5
    assert now("task_map_50_ratio", task="evaluator-0") == 0.7
    assert now("task_evaluated_step", task="evaluator-0") == 60
    assert now("task_step", task="evaluator-0") is None
    assert now("task_cpu_seconds_total", task="ps-0") == 4.5
    assert now("task_memory_bytes", task="ps-0") == 5000
    assert now("task_network_receive_bytes_total", task="ps-0") == 900
    assert now("task_network_transmit_bytes_total", task="ps-0") == 1800
    assert now("task_last_told_time_seconds", task="chief-0") == 1010
    assert now("task_gpus", task="worker-0") == 0 and now.all("task_gpu_busy_ratio") == []
    assert now.all("task_exit_code") == []


def test_labels_identify_task_and_run(run: RunDirectory) -> None:
    (sample,) = (
        one
        for one in read(run).samples
        if one.name == "clusterkit_task_info" and one.labels["task"] == "worker-1"
    )
    ip = str(next(task.ip for task in CLUSTER.tasks if task.name == "worker-1"))
    assert sample.labels == {
        "cluster": CLUSTER.name, "run": "20261122-100000", "role": "worker", "task": "worker-1",
        "index": "1", "ip": ip, "gpus": "",
    }  # fmt: skip


def test_a_run_that_ended(run: RunDirectory) -> None:
    trains(run)
    says(run, 11, "chief-0", "metrics", test_loss=0.1, note="words", steps_per_second=9)
    ends(run)
    end = read(run, at=5000)
    assert end("run_up") == 0 and end("run_success") == 1 and end("run_exit_code") == 0
    assert end("run_verdict_info", verdict="success", reason="finished", blame="") == 1
    assert end("run_duration_seconds") == 12.5 and end("run_phase_seconds", phase="up") == 2
    assert end("run_metric", metric="test_accuracy") == 0.97
    assert end("run_metric", metric="test_loss") == 0.1
    assert end("run_metric", metric="note") is None and end("run_metric", metric="nan") is None
    assert end.all("task_up") == [0] * 5 and end.states("chief-0") == ["ended"]
    assert end("task_exit_code", task="ps-0") == 0 and end("task_restarts_total", task="ps-0") == 1
    assert end.all("task_memory_bytes") == [] and end.all("task_memory_peak_bytes") == [5000] * 5
    assert end("task_steps_per_second", task="chief-0") is None
    assert end("task_cpu_seconds_total", task="ps-0") == 4.5


@pytest.mark.parametrize(
    ("outcome", "verdict"),
    [
        ({"success": False, "reason": "stopped"}, "stopped"),
        ({"success": False, "reason": "failed", "blame": "worker-1", "exit_code": 5}, "failed"),
    ],
)
def test_a_run_that_failed(run: RunDirectory, outcome: dict[str, Any], verdict: str) -> None:
    ends(run, **outcome)
    told = read(run)
    assert told("run_success") == 0
    assert told("run_exit_code") == outcome.get("exit_code", 0)
    blame = outcome.get("blame") or ""
    assert told("run_verdict_info", verdict=verdict, reason=outcome["reason"], blame=blame) == 1


def test_kept_containers_are_up_after_the_verdict(run: RunDirectory) -> None:
    trains(run)
    ends(run, kept=True)
    told = read(run)
    assert told("task_up", task="ps-0") == 1 and told("run_up") == 0


def test_a_straggler_is_reported_as_long_as_it_is_one(run: RunDirectory) -> None:
    trains(run)
    says(run, 9.7, "chief-0", "straggling", of="worker-1", seconds=20, cause="unknown", message="")
    assert read(run)("task_straggler", task="worker-1") == 1
    says(run, 9.8, "chief-0", "straggled", of="worker-1", seconds=20, message="")
    assert read(run).all("task_straggler") == [0] * 5


def test_gpus_and_limits_are_reported_if_there_are_any(tmp_path: Path) -> None:
    of = cluster(worker=1, ps=1, **{"role": {"worker": {"cpus": 2, "memory": "4g"}}})
    run = begun(tmp_path, of)
    gpus = [{"busy": 0.5, "memory": 100}, {"busy": 0.25, "memory": 50}]
    uses(run, 9, "worker-0", 1.0, gpus=gpus)
    told = read(run)
    assert told("task_gpu_busy_ratio") == 0.375 and told("task_gpu_memory_bytes") == 150
    assert told("task_cpu_limit_cores") == 2 and told("task_memory_limit_bytes") == 4 * 2**30


def test_the_newest_checkpoint_has_its_step(run: RunDirectory) -> None:
    trains(run)
    folder = run.output / "checkpoints"
    folder.mkdir()
    for name, at in (("ckpt-1", 1009.7), ("ckpt-0", 1004.0), ("ckpt-old", 900.0)):
        (folder / f"{name}.index").touch()
        os.utime(folder / f"{name}.index", (at, at))
    assert read(run)("run_checkpoint_step") == 60
    assert read(run)("run_checkpoint_time_seconds") == 1009.7
    (folder / "model.ckpt-58.index").touch()
    os.utime(folder / "model.ckpt-58.index", (1009.8, 1009.8))
    assert read(run)("run_checkpoint_step") == 58


def test_a_loss_that_is_not_finite_is_reported(run: RunDirectory) -> None:
    says(run, 1, "chief-0", "step", step=1, loss=0.5)
    says(run, 2, "chief-0", "step", step=2, loss=math.nan)
    loss = read(run)("task_loss", task="chief-0")
    assert loss is not None and math.isnan(loss)
