"""An evaluator that restarts after the leader has ended."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import pytest

from trainer.agent.beacon.client import JobEnded
from trainer.agent.supervisor.supervise import leaders_exit_code, watch_for_jobs_end
from trainer.agent.task import read_task

END = '{"time": 2.0, "event": "end", "exit_code": 5}\n'
START = '{"time": 3.0, "event": "start", "attempt": 1}\n'


@pytest.fixture
def task(tmp_path):
    (tmp_path / "progress").mkdir()
    return read_task({
        "CLUSTER_KIT_OUTPUT": str(tmp_path), "CLUSTER_KIT_LEADER": "chief-0",
        "CLUSTER_KIT_START_DEADLINE_S": "2",
        "TF_CONFIG": '{"cluster": {"evaluator": ["a:1"]},'
        ' "task": {"type": "evaluator", "index": 0}}',
    })  # fmt: skip


def test_the_evaluator_learns_the_end_from_the_leaders_last_line(task):
    leader = SimpleNamespace(connected=False)
    (task.output / "progress" / "chief-0.jsonl").write_text(START + END)
    outputs = []
    began = time.monotonic()
    watch_for_jobs_end(task, leader, outputs.append, patience_s=0.3)
    assert outputs == [JobEnded(5)]
    assert time.monotonic() - began > 0.3


def test_the_evaluator_waits_for_a_leader_of_a_new_run(task):
    leader = SimpleNamespace(connected=False)
    (task.output / "progress" / "chief-0.jsonl").write_text(END + START)
    threading.Timer(0.7, lambda: setattr(leader, "connected", True)).start()
    outputs = []
    watch_for_jobs_end(task, leader, outputs.append, patience_s=0.1)
    assert outputs == []


@pytest.mark.parametrize("text", ["", "nonsense\n", "[]\n", '{"event": "end"}\n', START])
def test_lines_that_are_not_an_end_are_ignored(tmp_path, text):
    assert leaders_exit_code(tmp_path / "missing.jsonl") is None
    (tmp_path / "chief-0.jsonl").write_text(text)
    assert leaders_exit_code(tmp_path / "chief-0.jsonl") is None
