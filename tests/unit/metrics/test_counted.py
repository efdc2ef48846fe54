"""Counters of a run continue over restarts and resumptions."""

from __future__ import annotations

import os
from pathlib import Path

from cluster_kit.metrics.prometheus import FAMILIES
from cluster_kit.observe.task_view import State
from cluster_kit.run.run_report import RunMetrics
from cluster_kit.workspace import RunDirectory
from tests.unit.metrics.runs import (
    begun,
    ends,
    happens,
    read,
    says,
    tells,
    trains,
    uses,
)


def test_counters_continue_over_restarts(run: RunDirectory) -> None:
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


def test_a_small_decrease_of_cpu_time_is_no_restart(run: RunDirectory) -> None:
    for at, cpu_s in enumerate((1.0, 8.0, 7.5, 8.5)):
        uses(run, at, "ps-0", cpu_s)
    assert read(run)("task_cpu_seconds_total", task="ps-0") == 8.5


def test_a_replica_counts_its_own_steps(run: RunDirectory) -> None:
    for at, step, own in ((1, 10, 1), (2, 50, 21), (3, 90, 2), (4, 120, 10)):
        says(run, at, "worker-1", "step", step=step, own_steps=own)
    assert read(run)("task_steps_total", task="worker-1") == 21 + 10
    assert read(run)("task_step", task="worker-1") == 120


def test_a_resumed_run_counts_from_where_it_continues(tmp_path: Path) -> None:
    run = begun(tmp_path, sizes={"chief-0.jsonl": 1})
    tells(run, "chief-0", "\n")
    for step in (501, 520):
        says(run, step - 500, "chief-0", "step", step=step)
    assert read(run)("task_steps_total", task="chief-0") == 19


def test_a_directory_that_is_resumed_is_read_from_the_beginning(tmp_path: Path) -> None:
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


def test_the_restart_of_an_unwatched_server_is_detected(run: RunDirectory) -> None:
    for at, received in ((1, 100), (2, 500), (3, 20), (4, 80)):
        uses(run, at, "ps-0", 1.0, rx=received)
    told = read(run, 5, {"ps-0": State.RUNNING})
    assert told("task_restarts_total", task="ps-0") == 1
    assert told("task_network_receive_bytes_total", task="ps-0") == 580
