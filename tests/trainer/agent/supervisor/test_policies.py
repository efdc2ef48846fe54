"""Who decides that a job succeeded, and exit codes that are permanent or retryable."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue

import pytest
from waiting import wait_for

from trainer.agent.beacon.messages import HeardAgain, Left, Silent
from trainer.agent.outcome import Outcome
from trainer.agent.policies import (
    RestartCodes,
    Success,
    SuccessRule,
    read_restart,
    read_success,
)
from trainer.agent.progress_file import Progress
from trainer.agent.servers.probe import ServersReady
from trainer.agent.supervisor.child import Program
from trainer.agent.supervisor.leader import Leader
from trainer.agent.task import read_task

HERE = "import os, sys, time, pathlib, signal\nhere = pathlib.Path(__file__).parent\n"
FOUR = {"worker": [f"127.0.0.1:{number}" for number in range(1, 5)]}
HALF = {"text": "{worker = 0.5}", "needed": {"worker": 2}}
ALL = {"text": '"all"', "needed": {"worker": 4}}
THREE = {"permanent": [[3, 3]], "retryable": []}
ONCE_ALL_ARE_HERE = (
    "(here / f'here-{os.environ[\"CLUSTER_KIT_TASK\"]}').touch()\n"
    "while len(list(here.glob('here-*'))) < 4: time.sleep(0.02)\n"
    "time.sleep(0.7)\n"  # more than the longest pause between two attempts to reach the beacon
)


def once_ended(name: str) -> str:
    """Lines of a program that wait until another task has recorded its end."""
    return (
        f"while '\"end\"' not in (here / 'progress' / '{name}.jsonl').read_text():\n"
        "    time.sleep(0.02)\n"
    )


@pytest.fixture
def job(run_task, free_port, tmp_path) -> Callable:
    """Start workers, each with a program of its own; a function that starts one again."""

    def start(*programs: str, success: object = None, restart: object = None, **variables: object):
        common = {"CLUSTER_KIT_BEACON": f"127.0.0.1:{free_port()}", **variables}
        common |= {"CLUSTER_KIT_SUCCESS": json.dumps(success)} if success else {}
        common |= {"CLUSTER_KIT_RESTART": json.dumps(restart)} if restart else {}
        cluster = {"worker": FOUR["worker"][: len(programs)]}
        wait = ONCE_ALL_ARE_HERE.replace("< 4", f"< {len(programs)}")

        def one(index: int):
            path = tmp_path / f"worker-{index}.py"
            path.write_text(HERE + wait + programs[index])
            return run_task(f"worker-{index}", cluster, "run", str(path), **common)

        return [one(index) for index in range(len(programs))], one

    return start


def test_half_of_the_workers_decide_although_two_fail(job, events):
    """The leader is one of those that fail, and waits for the others."""
    fails, last = "sys.exit(3)", once_ended("worker-1")  # else its failure comes with the job's end
    tasks, _ = job(fails, fails, last, "", success=HALF, restart=THREE)
    assert [task.wait(30) for task in tasks] == [0, 0, 0, 0]
    end = events("worker-0")[-1]
    assert (end["event"], end["exit_code"], end["tasks"]) == ("end", 0, [])
    assert end["decided"].startswith("2 of 4 workers ended well (success = {worker = 0.5}); ")
    for name in ("worker-0", "worker-1"):
        assert f"{name} ended with 3, which is permanent" in end["decided"]
    of_one = events("worker-1")[-1]
    assert (of_one["exit_code"], of_one["reason"], of_one["stays"]) == (3, "failed", True)


def test_a_share_that_cannot_be_reached_any_more_fails_at_once(job, events):
    began = time.monotonic()
    fails = "sys.exit(3)"
    later = once_ended("worker-2") + fails
    tasks, _ = job("time.sleep(60)", later, fails, later, success=HALF, restart=THREE)
    assert tasks[0].wait(30) == 1
    assert [task.wait(30) for task in tasks[1:]] == [0, 0, 0]
    assert time.monotonic() - began < 20
    end = events("worker-0")[-1]
    assert (end["reason"], end["tasks"]) == ("failed", ["worker-2"]), "the first one"
    assert end["decided"].endswith(": success = {worker = 0.5} cannot be reached any more")
    for name in ("worker-1", "worker-2", "worker-3"):
        assert f"{name} ended with 3, which is permanent" in end["decided"]


def test_an_early_success_ends_those_that_still_train(job, events, tmp_path):
    """The leader's program gets its grace, and ends by itself here."""
    leader = (
        "ended = pathlib.Path(os.environ['CLUSTER_KIT_MAILBOX']) / 'job-ended'\n"
        "while not ended.exists(): time.sleep(0.02)\n"
        "(here / 'saved').touch()\n"
    )
    tasks, _ = job(leader, "", "", leader, success=HALF)
    assert [task.wait(30) for task in tasks] == [0, 0, 0, 0]
    assert (tmp_path / "saved").exists()
    assert events("worker-0")[-1]["decided"] == (
        "2 of 4 workers ended well (success = {worker = 0.5})"
    )
    assert [events(f"worker-{n}")[-1]["reason"] for n in (1, 2, 3)] == ["finished"] * 3


def test_all_wait_for_the_last_one_and_fail_with_it(job, events):
    last = "time.sleep(1); print('too bad'); sys.exit(7)"
    tasks, _ = job("", "", "", last, success=ALL)
    assert tasks[0].wait(30) == 1
    end = events("worker-0")[-1]
    assert end["tasks"] == ["worker-3"]
    assert end["decided"] == 'worker-3 failed: success = "all" cannot be reached any more'


def test_all_end_well(job, events):
    tasks, _ = job("", "time.sleep(1)", success={"text": '"all"', "needed": {"worker": 2}})
    assert [task.wait(30) for task in tasks] == [0, 0]
    assert events("worker-0")[-1]["decided"] == '2 of 2 workers ended well (success = "all")'
    assert [one["name"] for one in events("worker-0") if one["event"] == "phase"] == ["waiting"]


def test_a_task_that_fails_is_tried_again_as_often_as_retries_says(job, events, tmp_path):
    """A follower's container is started again; then it ends well, and is counted."""
    fails_once = "again = here / 'again'\nif not again.exists(): again.touch(); sys.exit(9)\n"
    tasks, one = job("", fails_once, success={"text": '"all"', "needed": {"worker": 2}},
                     CLUSTER_KIT_RETRIES=1)  # fmt: skip
    assert tasks[1].wait(30) == 9
    second = one(1)
    assert (tasks[0].wait(30), second.wait(30)) == (0, 0)
    assert events("worker-0")[-1]["decided"] == '2 of 2 workers ended well (success = "all")'


def test_a_permanent_exit_code_of_a_follower_ends_the_job_although_retries_are_left(job, events):
    tasks, _ = job("time.sleep(60)", "sys.exit(3)", restart=THREE, CLUSTER_KIT_RETRIES=3)
    assert (tasks[0].wait(30), tasks[1].wait(30)) == (1, 0)
    end = events("worker-0")[-1]
    assert (end["tasks"], end["reason"]) == (["worker-1"], "failed")
    assert end["decided"] == "worker-1 ended with 3, which is permanent"


@pytest.mark.parametrize("ends_first", [True, False])
def test_an_evaluator_with_a_permanent_exit_code_stays(
    run_task, free_port, events, tmp_path, ends_first
):
    """Its exit code would otherwise start it again, also after the job's end."""
    common = {
        "CLUSTER_KIT_BEACON": f"127.0.0.1:{free_port()}", "CLUSTER_KIT_LEADER": "chief-0",
        "CLUSTER_KIT_RESTART": json.dumps(THREE),
    }  # fmt: skip
    after = "pathlib.Path(os.environ['CLUSTER_KIT_MAILBOX'], 'job-ended')"
    wait = "" if ends_first else f"while not {after}.exists(): time.sleep(0.02)\n"
    (tmp_path / "e.py").write_text(f"{HERE}(here / 'there').touch()\n{wait}sys.exit(3)")
    leader = "while not (here / 'there').exists(): time.sleep(0.02)\ntime.sleep(1.5)"
    (tmp_path / "l.py").write_text(HERE + leader)
    evaluator = run_task(
        "evaluator-0", {"evaluator": ["127.0.0.1:1"]}, "run", str(tmp_path / "e.py"), **common
    )
    chief = run_task("chief-0", {"chief": ["127.0.0.1:1"]}, "run", str(tmp_path / "l.py"), **common)
    assert (chief.wait(30), evaluator.wait(30)) == (0, 0)
    end = events("evaluator-0")[-1]
    assert (end["exit_code"], end["reason"], end["stays"]) == (3, "failed", True)


def test_a_permanent_exit_code_of_a_leader_that_a_signal_ends_is_final(job, events):
    restart = {"permanent": [[137, 137]], "retryable": []}
    (leader,), _ = job("os.kill(os.getpid(), 9)", restart=restart, CLUSTER_KIT_RETRIES=3)
    assert leader.wait(30) == 137
    assert not any(event["event"] == "retry" for event in events("worker-0"))
    assert events("worker-0")[-1]["decided"] == "worker-0 ended with 137, which is permanent"


def test_a_retryable_exit_code_starts_the_leaders_program_again(job, events):
    fails_once = "again = here / 'again'\nif not again.exists(): again.touch(); sys.exit(70)\n"
    restart = {"permanent": [], "retryable": [[64, 78]]}
    (leader,), _ = job(fails_once, restart=restart, CLUSTER_KIT_RETRIES=1)
    assert leader.wait(30) == 0
    (retry,) = (event for event in events("worker-0") if event["event"] == "retry")
    assert retry["reason"] == "worker-0 ended with 70, which is retryable"


def test_a_retryable_exit_code_is_retried_at_most_retries_times(job, events):
    restart = {"permanent": [], "retryable": [[64, 78]]}
    (leader,), _ = job("sys.exit(70)", restart=restart, CLUSTER_KIT_RETRIES=1)
    assert leader.wait(30) == 70
    assert "1 of 1 retries used" in events("worker-0")[-1]["message"]


def test_the_job_deadline_names_the_tasks_that_still_run(tmp_path):
    leader = leader_of_four(tmp_path, ALL, CLUSTER_KIT_JOB_DEADLINE_S="0.1")
    assert leader._hear(Left("worker-2", "done")) is None
    end = leader._finished(Outcome(0, "", ""))
    assert (end.exit_code, end.reason) == (6, "job-deadline")
    assert end.tasks == ("worker-1", "worker-3")


def test_a_restarted_leader_learns_which_tasks_have_ended(job, events, tmp_path):
    leader = "while not (here / 'done').exists(): time.sleep(0.02)\n"
    tasks, one = job(leader, "", success={"text": '"all"', "needed": {"worker": 2}})
    ended = tmp_path / "progress" / "worker-1.jsonl"
    wait_for(lambda: ended.exists() and '"stays": true' in ended.read_text())
    tasks[0].kill()
    tasks[0].wait()
    (tmp_path / "done").touch()
    second = one(0)
    assert (second.wait(30), tasks[1].wait(30)) == (0, 0)
    assert events("worker-0")[-1]["decided"] == '2 of 2 workers ended well (success = "all")'


def test_a_silent_task_counts_as_failed_until_it_is_heard_again(tmp_path):
    leader = leader_of_four(tmp_path, HALF, CLUSTER_KIT_SILENT_S="2")
    leader._ready = ServersReady({})
    assert leader._hear(Silent("worker-1", 30.0)) is None
    assert leader._hear(Silent("worker-2", 30.0)) is None
    assert leader._hear(HeardAgain("worker-1", 30.0)) is None
    assert leader._hear(Silent("worker-3", 30.0)) is None
    over = leader._hear(Silent("worker-1", 40.0))
    assert (over.reason, over.tasks) == ("silent", ("worker-2",)), "the first one"
    assert over.decided.startswith("worker-2 was silent for 30 s, worker-3 was silent for 30 s, ")


def leader_of_four(output: Path, success: object, **variables: str) -> Leader:
    environment = {
        "CLUSTER_KIT_BEACON": "127.0.0.1:1", "CLUSTER_KIT_OUTPUT": str(output),
        "CLUSTER_KIT_SUCCESS": json.dumps(success),
        "TF_CONFIG": json.dumps({"cluster": FOUR, "task": {"type": "worker", "index": 0}}),
        **variables,
    }  # fmt: skip
    program, progress = Program((), builtin=False), Progress(output / "worker-0.jsonl")
    return Leader(read_task(environment), program, progress, SimpleQueue(), None)


def success(text: str = "{worker = 0.5}", **needed: int) -> Success:
    tasks = ["chief-0", *(f"worker-{index}" for index in range(4))]
    return Success(SuccessRule(text, needed), tasks)


def test_shares_of_several_roles_must_all_be_reached():
    both = success(chief=1, worker=2)
    both.ended_well("worker-0")
    both.ended_well("worker-3")
    assert not both.is_reached and both.running == ("chief-0", "worker-1", "worker-2")
    both.ended_well("chief-0")
    assert both.is_reached
    assert both.sentence().startswith("1 of 1 chief and 2 of 4 workers ended well")


def test_a_role_that_the_rule_does_not_name_does_not_decide():
    workers = success(worker=2)
    workers.failed("chief-0", "ended with 1")
    assert not workers.is_out_of_reach
    for index in (1, 2, 3):
        workers.failed(f"worker-{index}", "failed")
    assert workers.is_out_of_reach
    assert workers.sentence() == (
        "worker-1 failed, worker-2 failed, worker-3 failed: success = {worker = 0.5} cannot be "
        "reached any more"
    )


def test_a_task_that_is_back_or_ends_well_has_not_failed():
    workers = success(worker=4)
    workers.failed("worker-0", "was silent for 20 s")
    assert workers.is_out_of_reach
    workers.is_back("worker-0")
    assert not workers.is_out_of_reach
    assert workers.failed("worker-0", "failed") and not workers.failed("worker-0", "failed")
    workers.ended_well("worker-0")
    assert not workers.is_out_of_reach and not workers.failed("worker-0", "failed")


def test_a_sentence_names_a_few_tasks_and_counts_the_others():
    tasks = [f"worker-{index}" for index in range(20)]
    rule = Success(SuccessRule('"all"', {"worker": 20}), tasks)
    for task in tasks:
        rule.failed(task, "failed")
    assert "worker-7 failed and 12 more failed: success" in rule.sentence()
    rest = Success(SuccessRule('"all"', {"worker": 20}), tasks).waiting_sentence()
    assert rest.endswith("worker-6, worker-7 and 12 more")


def test_the_variables_are_read():
    assert read_success("") is None
    assert read_success(json.dumps(HALF)) == SuccessRule("{worker = 0.5}", {"worker": 2})
    assert read_restart("") == RestartCodes()
    codes = read_restart('{"permanent": [[3, 3], [64, 78]], "retryable": [[130, 143]]}')
    assert codes == RestartCodes(((3, 3), (64, 78)), ((130, 143),))
    assert [codes.is_permanent(code) for code in (2, 3, 64, 78, 79)] == [
        False, True, True, True, False,
    ]  # fmt: skip
    assert codes.is_retryable(137) and not codes.is_retryable(129)


@pytest.mark.parametrize("text", ["[]", "{}", '{"needed": 1, "text": ""}', "x", '{"needed": []}'])
def test_a_variable_that_cannot_be_read_is_named(run_task, program, text):
    for name in ("CLUSTER_KIT_SUCCESS", "CLUSTER_KIT_RESTART"):
        task = run_task("chief-0", {"chief": ["127.0.0.1:1"]}, "run", program(""), **{name: text})
        assert task.wait(30) == 2
        assert name in task.stdout.read()
