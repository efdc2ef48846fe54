"""A task's resource use, one line per second."""

from __future__ import annotations

import itertools
import json
import shutil
import time

from trainer.agent import usage_recorder
from trainer.agent.task import read_task
from trainer.agent.tcp_connections import Connection
from trainer.agent.usage_recorder import Recorder, pause_s, tasks_by_ip


def read(task):
    return [
        json.loads(line)
        for line in task.progress_file.with_suffix(".usage").read_text().splitlines()
    ]


def test_the_first_and_the_last_sample_are_written_at_once(alone):
    began = time.time()
    recording = Recorder(alone)
    recording.stop()
    lines = read(alone)
    assert len(lines) == 2
    for line in lines:
        assert set(line) == {"time", "event", "cpu_s", "memory", "rx_bytes", "tx_bytes", "sent_to"}
        assert line["event"] == "usage" and line["time"] >= began - 0.001
        assert line["cpu_s"] > 0 and line["memory"] > 1 << 20
    assert lines[0]["cpu_s"] <= lines[1]["cpu_s"]


def test_the_tasks_of_a_large_cluster_and_of_a_long_run_take_their_samples_less_often():
    assert [pause_s(tasks, 60) for tasks in (1, 10, 34, 200)] == [1, 1, 3.4, 5]
    assert [pause_s(tasks, 3601) for tasks in (1, 200)] == [5, 5]


def test_between_them_is_one_sample_per_interval_and_rarely_the_table(alone, monkeypatch):
    monkeypatch.setattr(usage_recorder, "EVERY_S", 0.01)
    recording = Recorder(alone)
    until = time.monotonic() + 10
    while len(read(alone)) < 12 and time.monotonic() < until:
        time.sleep(0.01)
    recording.stop()
    lines = read(alone)
    assert len(lines) >= 13
    with_table = [at for at, line in enumerate(lines) if "sent_to" in line]
    assert with_table[:2] == [0, 10] and with_table[-1] == len(lines) - 1


def test_bytes_sent_by_a_program_that_has_ended_are_counted(tmp_path, monkeypatch):
    """Its connections exist only between two samples that include connections."""
    monkeypatch.setattr(usage_recorder, "EVERY_S", 0.02)
    cluster = {"chief": ["10.0.0.4:1"], "ps": ["10.0.0.5:1"]}
    config = {"cluster": cluster, "task": {"type": "chief", "index": 0}}
    task = read_task({"TF_CONFIG": json.dumps(config), "CLUSTER_KIT_OUTPUT": str(tmp_path)})

    def written() -> int:
        return len(read(task)) if task.progress_file.with_suffix(".usage").exists() else 0

    def found() -> list[Connection]:
        return [Connection(b"a", "10.0.0.5", 5000)] if 0 < written() < 4 else []

    monkeypatch.setattr(usage_recorder, "connections", found)
    recording = Recorder(task)
    until = time.monotonic() + 10
    while written() < 4:
        assert time.monotonic() < until
        time.sleep(0.005)
    recording.stop()
    assert read(task)[-1]["sent_to"] == {"ps-0": 5000}


def test_in_a_long_run_connections_are_read_rarely(alone, monkeypatch):
    monkeypatch.setattr(usage_recorder, "EVERY_S", 0.001)
    looks = []
    monkeypatch.setattr(
        usage_recorder, "connections", lambda: looks.append(len(read_lines())) or []
    )
    usage = alone.progress_file.with_suffix(".usage")

    def read_lines() -> list[str]:
        return usage.read_text().splitlines() if usage.exists() else []

    recording = Recorder(alone)
    until = time.monotonic() + 10
    while len(read_lines()) < 60 and time.monotonic() < until:
        time.sleep(0.005)
    recording.stop()
    assert looks[:8] == [0, 1, 2, 4, 7, 11, 16, 21]
    apart = [later - one for one, later in itertools.pairwise(looks[:-1])]
    assert apart[-2:] == [5, 5] and max(apart) == 5


def test_a_removed_output_is_not_created_again(alone, monkeypatch):
    monkeypatch.setattr(usage_recorder, "EVERY_S", 0.01)
    recording = Recorder(alone)
    shutil.rmtree(alone.progress_file.parent)
    time.sleep(0.05)
    recording.stop()
    assert not alone.progress_file.parent.exists()


def test_a_task_knows_the_others_by_address(tmp_path):
    cluster = {"chief": ["10.0.0.2:1"], "worker": ["10.0.0.3:1"], "ps": ["10.0.0.4:1"]}

    def task(name):
        role, _, index = name.partition("-")
        config = {"cluster": cluster, "task": {"type": role, "index": int(index)}}
        return read_task({"TF_CONFIG": json.dumps(config)})

    assert tasks_by_ip(task("ps-0")) == {"10.0.0.2": "chief-0", "10.0.0.3": "worker-0"}
    cluster["ps"].append("10.0.0.4:2")
    assert tasks_by_ip(task("ps-0")) == {}, "two tasks share an address: which one it was?"
