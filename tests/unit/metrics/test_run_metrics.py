"""The metrics of a run, from its directory: while it goes on, and at its end."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import pytest

from cluster_kit.metrics.table import FAMILIES
from cluster_kit.observe.task_view import State
from cluster_kit.run.keeping.metrics import RunMetrics
from cluster_kit.workspace import RunDirectory
from tests.make import cluster
from tests.unit.metrics.runs import (
    CLUSTER,
    begun,
    ends,
    happens,
    read,
    says,
    tells,
    trains,
    uses,
)


def test_a_run_that_goes_on(run: RunDirectory) -> None:
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


def test_labels_say_of_which_task_of_which_run(run: RunDirectory) -> None:
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


def test_containers_that_were_kept_are_up_after_the_verdict(run: RunDirectory) -> None:
    trains(run)
    ends(run, kept=True)
    told = read(run)
    assert told("task_up", task="ps-0") == 1 and told("run_up") == 0


def test_counts_go_on_over_restarts(run: RunDirectory) -> None:
    metrics = RunMetrics(run)
    trains(run)
    before = read(metrics)
    happens(run, 11, "ps-0", "die", 137)
    assert read(metrics, 11).states("ps-0") == ["ended"]
    assert read(metrics, 11)("task_exit_code", task="ps-0") == 137
    happens(run, 12, "ps-0", "start")
    uses(run, 13, "ps-0", 1.0, rx=10)
    says(run, 13, "chief-0", "retry", attempt=2, reason="ps-0 was lost")
    says(run, 13, "chief-0", "start", attempt=2)
    says(run, 14, "chief-0", "step", step=41)
    says(run, 15, "chief-0", "step", step=70)
    after = read(metrics, 15)
    assert after("task_restarts_total", task="ps-0") == 1 and after("run_retries_total") == 1
    assert after("task_restarts_total", task="chief-0") == 0
    assert after("task_cpu_seconds_total", task="ps-0") == 5.5
    assert after("task_network_receive_bytes_total", task="ps-0") == 910
    assert after("task_step", task="chief-0") == 70
    assert after("task_steps_total", task="chief-0") == 60 + 29
    assert after("task_exit_code", task="ps-0") is None
    counters = {name for name, family in FAMILIES.items() if family.kind == "counter"}
    later = {(one.name, str(one.labels)): one.value for one in after.samples}
    for one in before.samples:
        if one.name in counters:
            assert later[one.name, str(one.labels)] >= one.value


def test_cpu_time_that_falls_a_little_is_no_restart(run: RunDirectory) -> None:
    for at, cpu_s in enumerate((1.0, 8.0, 7.5, 8.5)):
        uses(run, at, "ps-0", cpu_s)
    assert read(run)("task_cpu_seconds_total", task="ps-0") == 8.5


def test_a_replica_counts_its_own_steps(run: RunDirectory) -> None:
    for at, step, own in ((1, 10, 1), (2, 50, 21), (3, 90, 2), (4, 120, 10)):
        says(run, at, "worker-1", "step", step=step, own_steps=own)
    assert read(run)("task_steps_total", task="worker-1") == 21 + 10
    assert read(run)("task_step", task="worker-1") == 120


def test_a_resumed_run_counts_from_where_it_goes_on(tmp_path: Path) -> None:
    run = begun(tmp_path, sizes={"chief-0.jsonl": 1})
    tells(run, "chief-0", "\n")
    for step in (501, 520):
        says(run, step - 500, "chief-0", "step", step=step)
    assert read(run)("task_steps_total", task="chief-0") == 19


def test_a_directory_that_is_resumed_meanwhile_begins_anew(tmp_path: Path) -> None:
    run = begun(tmp_path)
    trains(run)
    ends(run)
    metrics = RunMetrics(run)
    assert read(metrics)("run_success") == 1
    text_ = run.record.read_text().replace('"id": "id"', '"id": "another"')
    text_ = text_.replace('"since": 1000.0', '"since": 1100.0')
    run.record.write_text(text_)
    os.utime(run.record, (2000, 2000))
    now = read(metrics, 101)
    assert now("run_success") is None and now.all("task_cpu_seconds_total") == []


def test_what_the_engine_says_counts_more_than_what_was_written(run: RunDirectory) -> None:
    trains(run)
    engine = {"chief-0": State.RUNNING, "ps-0": State.PAUSED, "worker-0": State.ENDED}
    told = read(run, 60, engine)
    assert told.states("chief-0") == ["training"] and told.states("ps-0") == ["paused"]
    assert told.states("worker-0") == ["ended"] and told("task_up", task="worker-0") == 0
    assert told.states("worker-1") == ["silent"]
    happens(run, 61, "chief-0", "die", 1)
    assert read(run, 62, engine).states("chief-0") == ["running"]


def test_a_server_that_nobody_watches_is_known_to_have_been_restarted(run: RunDirectory) -> None:
    for at, received in ((1, 100), (2, 500), (3, 20), (4, 80)):
        uses(run, at, "ps-0", 1.0, rx=received)
    told = read(run, 5, {"ps-0": State.RUNNING})
    assert told("task_restarts_total", task="ps-0") == 1
    assert told("task_network_receive_bytes_total", task="ps-0") == 580


def test_a_task_that_wrote_nothing_for_long_is_silent(run: RunDirectory) -> None:
    trains(run)
    assert read(run, 24).states("ps-0") == ["ready"]
    late = read(run, 26)
    assert late.states("ps-0") == ["silent"] and late("task_up", task="ps-0") == 0
    assert late("run_up") == 0


def test_a_task_that_is_frozen_is_paused(run: RunDirectory) -> None:
    trains(run)
    happens(run, 10, "ps-0", "pause")
    assert read(run, 60).states("ps-0") == ["paused"]
    happens(run, 61, "ps-0", "unpause")
    uses(run, 61, "ps-0", 4.6, rx=901)
    assert read(run, 62).states("ps-0") == ["ready"]


def test_without_events_the_tasks_words_must_do(run: RunDirectory) -> None:
    assert read(run).states("chief-0") == ["created"]
    says(run, 0, "chief-0", "start", attempt=1)
    assert read(run).states("chief-0") == ["running"]
    says(run, 1, "chief-0", "end", exit_code=1, reason="failed")
    assert read(run).states("chief-0") == ["ended"]
    says(run, 2, "chief-0", "start", attempt=1)
    says(run, 3, "chief-0", "step", step=1)
    assert read(run).states("chief-0") == ["training"]
    assert read(run)("task_restarts_total", task="chief-0") == 1


def test_a_straggler_is_told_as_long_as_it_is_one(run: RunDirectory) -> None:
    trains(run)
    says(run, 9.7, "chief-0", "straggling", of="worker-1", seconds=20, cause="unknown", message="")
    assert read(run)("task_straggler", task="worker-1") == 1
    says(run, 9.8, "chief-0", "straggled", of="worker-1", seconds=20, message="")
    assert read(run).all("task_straggler") == [0] * 5


def test_gpus_and_limits_are_told_where_there_are_any(tmp_path: Path) -> None:
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


def test_a_loss_that_is_no_number_any_more_is_told(run: RunDirectory) -> None:
    says(run, 1, "chief-0", "step", step=1, loss=0.5)
    says(run, 2, "chief-0", "step", step=2, loss=math.nan)
    loss = read(run)("task_loss", task="chief-0")
    assert loss is not None and math.isnan(loss)
