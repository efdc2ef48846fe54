"""A program without progress is restarted, and the second time the job ends."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time

import pytest
from pairs import IS_HERE, MARK, ONCE_THE_OTHER_IS_HERE
from pairs import start as start_pair
from waiting import wait_for

from trainer.agent.progress_file import Progress, Reports
from trainer.agent.supervisor.stall import Stalled, Waits, ended, watch, written
from trainer.agent.task import read_task
from trainer.agent.usage import Usage
from trainer.contract.events import Epoch, Own, Step

pytestmark = pytest.mark.first

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


def waits(folder) -> Waits:
    return Waits(Progress(folder / "waits.jsonl"), "chief-0")


def start(run_task, tmp_path, hangs: int, **variables: object):
    program = tmp_path / "program.py"
    program.write_text(HANGS.format(steps=3, hangs=hangs))
    return run_task("chief-0", ALONE, "run", str(program), **variables)


def test_a_stalled_program_is_restarted_once_and_its_stacks_are_kept(run_task, events, tmp_path):
    task = start(run_task, tmp_path, 1, CLUSTER_KIT_STALL_S=2, CLUSTER_KIT_RETRIES=3)
    assert task.wait(60) == 0
    found = events("chief-0")
    retry = next(event for event in found if event["event"] == "retry")
    assert retry["reason"].startswith("no progress for ")
    kept = (tmp_path / "stacks" / "chief-0.txt").read_text()
    assert "in wait_for_ever" in kept and "chief-0: no progress for " in kept


def test_the_other_programs_of_an_all_reduce_start_again_too(run_task, free_port, events, tmp_path):
    """One that hangs in its own code would hang on, and the second attempt wait for it."""
    hangs = "(here / 'there').touch()\ntime.sleep(60)\n"
    leader = ONCE_THE_OTHER_IS_HERE + HANGS.format(steps=3, hangs=1)
    led, followed, _ = start_pair(
        run_task, free_port, tmp_path, leader, hangs, CLUSTER_KIT_STALL_S=2, CLUSTER_KIT_RETRIES=3
    )
    assert followed.wait(60) != 0
    assert "no progress" in events("worker-1")[-1]["message"]
    assert led.wait(60) == 0


def test_a_job_of_several_programs_does_not_say_which_one_hangs() -> None:
    (alone, several, cut) = (
        ended("no progress", tasks, several=several).message
        for tasks, several in (((), False), ((), True), (("worker-1",), True))
    )
    unsure = "; any task may be the one that hangs"
    assert unsure in several and several.replace(unsure, "") == alone == cut


def test_the_second_stall_ends_the_job(run_task, events, tmp_path):
    task = start(run_task, tmp_path, 2, CLUSTER_KIT_STALL_S=2, CLUSTER_KIT_RETRIES=3)
    assert task.wait(60) == 6
    end = events("chief-0")[-1]
    assert (end["reason"], end["exit_code"]) == ("stall", 6)
    assert "after it was started again" in end["message"]
    assert (tmp_path / "tries").read_text() == "xx"


def test_a_program_of_which_only_threads_are_left_is_not_started_again(run_task, events, tmp_path):
    """It has trained to its end: the second attempt would train once more, and not end either."""
    program = tmp_path / "program.py"
    left = "its main thread has ended, but not Thread-1"
    mailbox = 'pathlib.Path(os.environ["CLUSTER_KIT_MAILBOX"], "threads")'
    waits = f'{mailbox}.write_text("{left}")\n    wait_for_ever()'
    program.write_text(HANGS.format(steps=3, hangs=2).replace("wait_for_ever()\n", f"{waits}\n", 2))
    variables = {"CLUSTER_KIT_STALL_S": 2, "CLUSTER_KIT_RETRIES": 3}
    assert run_task("chief-0", ALONE, "run", str(program), **variables).wait(60) == 6
    end = events("chief-0")[-1]
    assert end["reason"] == "stall" and f" s: {left}; where each task" in end["message"]
    assert (tmp_path / "tries").read_text() == "x"


def test_a_stall_names_ps_whose_programs_have_ended(run_task, free_port, tmp_path, events):
    hanging, short = tmp_path / "hanging.py", tmp_path / "short.py"
    hanging.write_text(MARK + ONCE_THE_OTHER_IS_HERE + HANGS.format(steps=3, hangs=1))
    short.write_text(MARK + IS_HERE)
    cluster = {"worker": ["127.0.0.1:1"], "ps": ["127.0.0.1:2"]}
    variables = {
        "CLUSTER_KIT_BEACON": f"127.0.0.1:{free_port()}",
        "CLUSTER_KIT_SERVERS": "",
        "CLUSTER_KIT_STALL_S": 4,
    }
    leader = run_task("worker-0", cluster, "run", str(hanging), **variables)
    assert run_task("ps-0", cluster, "run", str(short), **variables).wait(60) == 0
    assert leader.wait(60) == 6
    assert "ps-0 had already ended, with 0: a ps has to" in events("worker-0")[-1]["message"]


def test_a_stall_is_ignored_if_the_check_is_off(run_task, tmp_path):
    task = start(run_task, tmp_path, 1, CLUSTER_KIT_STALL_S=0)
    wait_for((tmp_path / "tries").exists)
    time.sleep(2.5)  # longer than the tests above wait for a stall
    assert task.poll() is None
    assert (tmp_path / "tries").read_text() == "x"


def test_new_lines_of_all_trainers_are_read_once_and_completely(tmp_path):
    chief, evaluator = tmp_path / "chief-0.jsonl", tmp_path / "evaluator-0.jsonl"
    chief.write_text('{"event": "step", "step": 1}\n')
    reports = Reports(tmp_path)
    chief.write_text(chief.read_text() + '{"event": "step", "step": 2}\nnonsense\n[1]\n{"event"')
    evaluator.write_text('{"event": "evaluation"}\n')
    (tmp_path / "worker-1.jsonl").write_text('{"event": "mine"}\n')
    found = sorted(reports.new(), key=str)
    assert found == [("chief-0", Step(step=2)), ("worker-1", Own(name="mine"))]
    assert list(reports.new()) == []
    chief.write_text(chief.read_text() + ': "epoch"}\n')
    assert list(reports.new()) == [("chief-0", Epoch())]


def test_lines_of_a_program_count_whatever_the_time_of_day(tmp_path):
    nothing = written(tmp_path)
    (tmp_path / "progress").mkdir()
    (tmp_path / "progress" / "chief-0.beat").touch()
    assert written(tmp_path) == nothing
    (tmp_path / "checkpoints").mkdir()
    index = tmp_path / "checkpoints" / "ckpt-1.index"
    index.touch()
    first = written(tmp_path)
    assert first != nothing
    os.utime(index, (0, time.time() - 3600))  # written again after the clock was set back
    assert written(tmp_path) != first
    assert written(tmp_path / "removed") == nothing


def test_the_watch_survives_the_removal_of_the_progress_directory(tmp_path):
    """The watch used to end without a message, so that stalls were no longer detected."""
    task = read_task({"CLUSTER_KIT_OUTPUT": str(tmp_path), "CLUSTER_KIT_STALL_S": "2.5"})
    task.progress_file.parent.mkdir()
    task.progress_file.write_text('{"event": "step", "step": 1}\n')
    remove = threading.Timer(0.5, shutil.rmtree, [task.progress_file.parent])
    remove.start()
    outputs: list[Stalled] = []
    used = {"chief-0": Usage(0, 0)}
    watch(task, 7, lambda: used, waits(tmp_path), outputs.append, threading.Event())
    remove.join()
    assert [stalled.attempt for stalled in outputs] == [7]


def test_a_file_that_is_rewritten_is_read_from_its_beginning(tmp_path):
    chief = tmp_path / "chief-0.jsonl"
    chief.write_text('{"event": "step", "step": 1}\n' * 3)
    reports = Reports(tmp_path)
    chief.unlink()
    chief.write_text('{"event": "step", "step": 4}\n')
    assert list(reports.new()) == [("chief-0", Step(step=4))]


def test_the_watch_ends_with_its_attempt_and_reports_once(tmp_path):
    task = read_task({"CLUSTER_KIT_OUTPUT": str(tmp_path), "CLUSTER_KIT_STALL_S": "0.5"})
    task.progress_file.parent.mkdir()
    outputs: list[Stalled] = []
    used = {"chief-0": Usage(0, 0)}
    watch(task, 7, lambda: used, waits(tmp_path), outputs.append, threading.Event())
    assert [stalled.attempt for stalled in outputs] == [7]
    over = threading.Event()
    over.set()
    watch(task, 8, dict, waits(tmp_path), outputs.append, over)
    assert len(outputs) == 1
    assert json.dumps(outputs[0].seconds)
