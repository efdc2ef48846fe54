"""A program that makes no progress is started again, and ended at the second time."""

from __future__ import annotations

import json
import threading
import time

from trainer.events import Reports
from trainer.supervisor.stall import Stalled, newest_change, watch
from trainer.task import read_task
from trainer.usage import Usage

ALONE = {"chief": ["127.0.0.1:1"]}
HANGS = """import json, os, pathlib, threading, time
def wait_for_ever():
    threading.Event().wait()
progress = open(os.environ["CLUSTER_KIT_PROGRESS"], "a", buffering=1)
tries = pathlib.Path(__file__).with_name("tries")
tries.open("a").write("x")
for step in range({steps}):
    print(json.dumps(dict(time=time.time(), event="step", step=step)), file=progress)
    time.sleep(0.1)
if len(tries.read_text()) <= {hangs}:
    wait_for_ever()
"""


def start(run_task, tmp_path, hangs: int, **variables: object):
    program = tmp_path / "program.py"
    program.write_text(HANGS.format(steps=3, hangs=hangs))
    return run_task("chief-0", ALONE, "run", str(program), **variables)


def test_it_is_started_again_once_and_where_it_hung_is_kept(run_task, events, tmp_path):
    task = start(run_task, tmp_path, 1, CLUSTER_KIT_STALL_S=1.2, CLUSTER_KIT_RETRIES=3)
    assert task.wait(60) == 0
    found = events("chief-0")
    retry = next(event for event in found if event["event"] == "retry")
    assert retry["reason"].startswith("no progress for ")
    kept = (tmp_path / "stacks" / "chief-0.txt").read_text()
    assert "in wait_for_ever" in kept and "chief-0: no progress for " in kept


def test_the_second_time_ends_the_job(run_task, events, tmp_path):
    task = start(run_task, tmp_path, 2, CLUSTER_KIT_STALL_S=1.2, CLUSTER_KIT_RETRIES=3)
    assert task.wait(60) == 6
    end = events("chief-0")[-1]
    assert (end["reason"], end["exit_code"]) == ("stall", 6)
    assert "after it was started again" in end["message"]
    assert (tmp_path / "tries").read_text() == "xx"


def test_it_may_hang_for_ever_where_that_is_switched_off(run_task, tmp_path):
    task = start(run_task, tmp_path, 1, CLUSTER_KIT_STALL_S=0, CLUSTER_KIT_JOB_DEADLINE_S=2.5)
    assert task.wait(60) == 6
    assert (tmp_path / "tries").read_text() == "x"


def test_new_lines_are_read_once_whole_and_of_whoever_trains(tmp_path):
    chief, evaluator = tmp_path / "chief-0.jsonl", tmp_path / "evaluator-0.jsonl"
    chief.write_text('{"event": "step", "step": 1}\n')
    reports = Reports(tmp_path)
    chief.write_text(chief.read_text() + '{"event": "step", "step": 2}\nnonsense\n[1]\n{"event"')
    evaluator.write_text('{"event": "evaluation"}\n')
    (tmp_path / "worker-1.jsonl").write_text('{"event": "mine"}\n')
    found = sorted(reports.new(), key=str)
    assert found == [("chief-0", {"event": "step", "step": 2}), ("worker-1", {"event": "mine"})]
    assert list(reports.new()) == []
    chief.write_text(chief.read_text() + ': "epoch"}\n')
    assert list(reports.new()) == [("chief-0", {"event": "epoch"})]


def test_the_newest_change_is_a_programs(tmp_path):
    assert newest_change(tmp_path) == 0
    (tmp_path / "progress").mkdir()
    (tmp_path / "progress" / "chief-0.beat").touch()
    assert newest_change(tmp_path) == 0
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "ckpt-1.index").touch()
    assert newest_change(tmp_path) > time.time() - 60


def test_a_watch_ends_with_its_attempt_and_says_it_once(tmp_path):
    task = read_task({"CLUSTER_KIT_OUTPUT": str(tmp_path), "CLUSTER_KIT_STALL_S": "0.5"})
    task.progress_file.parent.mkdir()
    said: list[Stalled] = []
    watch(task, 7, lambda: {"chief-0": Usage(0, 0)}, said.append, threading.Event())
    assert [stalled.attempt for stalled in said] == [7]
    over = threading.Event()
    over.set()
    watch(task, 8, dict, said.append, over)
    assert len(said) == 1
    assert json.dumps(said[0].seconds)
