"""The trace that a manifest asks for: when it is taken, and what is reported about it."""

from __future__ import annotations

import json
import subprocess

import pytest

from trainer.agent.errors import ContractError
from trainer.agent.profiling.at_step import begin, reached, read, take
from trainer.agent.progress_file import Progress, Reports
from trainer.agent.task import read_task


@pytest.fixture
def task(tmp_path):
    return read_task({"CLUSTER_KIT_OUTPUT": str(tmp_path)})


def events(task):
    return [json.loads(line) for line in task.progress_file.read_text().splitlines()]


def done(code: int, out: str = "", err: str = ""):
    return lambda _seconds: subprocess.CompletedProcess([], code, out, err)


def test_a_trace_begins_when_a_task_reports_the_step_or_a_later_one(task):
    progress = Progress(task.progress_file)
    reports = Reports(task.progress_file.parent)
    progress.write("step", step=99)
    progress.write("training", steps=200)
    progress.write("step", step="100")
    assert not reached(reports, 100)
    Progress(task.progress_file.with_name("worker-1.jsonl")).write("step", step=130)
    assert reached(reports, 100)


def test_the_result_is_reported(task, capsys):
    facts = {"folder": "profile/now", "trace": "trace.json.gz", "tasks": {"ps-0": {}},
             "missing": {"worker-1": "it did not answer in time"}}  # fmt: skip
    take(task, Progress(task.progress_file), 2.0, done(0, f"a warning\n{json.dumps(facts)}\n"))
    (event,) = events(task)
    assert {key: event[key] for key in ("event", "folder", "missing", "message")} == {
        "event": "profiled", "folder": "profile/now", "missing": ["worker-1"], "message": "",
    }  # fmt: skip
    assert capsys.readouterr().err == (
        "worker-0: traced 2 s of 1 task, without worker-1: profile/now/trace.json.gz\n"
    )


def test_a_failed_trace_gives_the_reason(task):
    progress = Progress(task.progress_file)
    take(task, progress, 2.0, done(1, "", "warning\nerror: no task could be traced: …\n"))
    take(task, progress, 2.0, done(-9))
    assert [event["message"] for event in events(task)] == [
        "error: no task could be traced: …", "it was ended",
    ]  # fmt: skip


def test_without_the_variable_no_trace_is_taken(task):
    begin(task, Progress(task.progress_file), {})
    assert events(task) == []


def test_parsing_of_the_variable():
    assert read('{"at_step": 100, "seconds": 2}') == (100, 2.0)
    with pytest.raises(ContractError, match="CLUSTER_KIT_PROFILE = '100'"):
        read("100")
