"""A leader with the rest of its job, as real processes: evaluator, servers, GPUs of workers."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from reading import read_until

ALONE = {"chief": ["127.0.0.1:1"]}
EVALUATOR = {"evaluator": ["127.0.0.1:1"]}


def pair(run_task, free_port, leader: str, evaluator: str, **variables: object):
    """Start a leader, and an evaluator that follows its beacon."""
    common = {
        "CLUSTER_KIT_BEACON": f"127.0.0.1:{free_port()}", "CLUSTER_KIT_LEADER": "chief-0",
        "CLUSTER_KIT_START_DEADLINE_S": 10, **variables,
    }  # fmt: skip
    follower = run_task("evaluator-0", EVALUATOR, "run", evaluator, **common)
    return run_task("chief-0", ALONE, "run", leader, **common), follower


def write(path: Path, text: str) -> str:
    path.write_text("import os, sys, time, pathlib\n" + text)
    return str(path)


SAYS_IT_IS_HERE = "pathlib.Path(__file__).with_name('here').touch()\n"
ONCE_THE_OTHER_IS_HERE = (
    "while not pathlib.Path(__file__).with_name('here').exists(): time.sleep(0.02)\n"
    "time.sleep(0.6)\n"  # the longest pause between two attempts to reach the beacon
)
WAITS_FOR_THE_END = SAYS_IT_IS_HERE + (
    "ended = pathlib.Path(os.environ['CLUSTER_KIT_MAILBOX']) / 'job-ended'\n"
    "while not ended.exists(): time.sleep(0.02)\n"
)


def test_the_evaluator_is_informed_of_the_end(run_task, free_port, events, tmp_path):
    leader, follower = pair(
        run_task, free_port,
        write(tmp_path / "l.py", ONCE_THE_OTHER_IS_HERE),
        write(tmp_path / "e.py", WAITS_FOR_THE_END),
    )  # fmt: skip
    assert (leader.wait(60), follower.wait(60)) == (0, 0)
    assert events("evaluator-0")[-1]["reason"] == "finished"


def test_the_evaluators_grace(run_task, free_port, events, tmp_path):
    leader, follower = pair(
        run_task, free_port,
        write(tmp_path / "l.py", ONCE_THE_OTHER_IS_HERE),
        write(tmp_path / "e.py", SAYS_IT_IS_HERE + "time.sleep(60)"),
        CLUSTER_KIT_EVALUATOR_GRACE_S=0.3,
    )  # fmt: skip
    assert (leader.wait(60), follower.wait(60)) == (0, 6)
    assert events("evaluator-0")[-1]["reason"] == "evaluator-grace"


def test_a_failed_job_ends_the_evaluator_at_once(run_task, free_port, events, tmp_path):
    leader, follower = pair(
        run_task, free_port,
        write(tmp_path / "l.py", ONCE_THE_OTHER_IS_HERE + "sys.exit(4)"),
        write(tmp_path / "e.py", SAYS_IT_IS_HERE + "time.sleep(60)"),
    )  # fmt: skip
    assert (leader.wait(60), follower.wait(60)) == (4, 0)
    assert "exit code 4" in events("evaluator-0")[-1]["message"]


def test_a_leader_that_never_starts(run_task, free_port, events, program):
    task = run_task(
        "evaluator-0", EVALUATOR, "run", program("time.sleep(60)"), CLUSTER_KIT_LEADER="chief-0",
        CLUSTER_KIT_BEACON=f"127.0.0.1:{free_port()}", CLUSTER_KIT_START_DEADLINE_S=0.4,
    )  # fmt: skip
    assert task.wait(60) == 6
    end = events("evaluator-0")[-1]
    assert (end["reason"], end["tasks"]) == ("start-deadline", ["chief-0"])


WAITS = "print('before'); import tensorflow; print('must not come')"


@pytest.fixture
def without_its_ps(run_task, free_port, toy_tensorflow):
    """Returns a function that runs a program as the chief of a cluster whose ps never answers."""
    pytest.importorskip("grpc", reason="grpcio, a part of the image, is not installed here")

    def run(path: str, **variables: object):
        cluster = {**ALONE, "ps": [f"127.0.0.1:{free_port()}"]}
        return run_task("chief-0", cluster, "run", path, **variables)

    return run


def test_missing_servers_at_the_start_deadline(without_its_ps, events, program):
    task = without_its_ps(program(WAITS), CLUSTER_KIT_START_DEADLINE_S=3)
    assert task.wait(60) == 6
    found = task.stdout.read()
    assert found.startswith("before\nimporting\n") and "must not come" not in found
    end = events("chief-0")[-1]
    assert (end["reason"], end["tasks"]) == ("start-deadline", ["ps-0"])


def test_sigterm_while_the_leader_waits_for_servers(without_its_ps, events, program):
    task = without_its_ps(program(WAITS))
    assert read_until(task, "importing") == ["before\n", "importing\n"]
    began = time.monotonic()
    task.terminate()
    assert task.wait(60) == 143
    assert time.monotonic() - began < 20
    assert "must not come" not in task.stdout.read()
    assert events("chief-0")[-1]["reason"] == "stopped"


def test_a_program_without_tensorflow_does_not_wait(without_its_ps, events, program):
    assert without_its_ps(program("print('done')")).wait(60) == 0
    assert [event["event"] for event in events("chief-0")] == ["start", "end"]


MISSES_ITS_GPU = (
    "m = pathlib.Path(os.environ['CLUSTER_KIT_MAILBOX']) / 'gpu-missing'\n"
    "m.write_text('worker-1 was promised GPU 1, sees none'); sys.exit(3)"
)


def test_a_worker_without_its_gpu_ends_the_leaders_program(run_task, free_port, events, tmp_path):
    cluster = {"worker": ["127.0.0.1:1", "127.0.0.1:2"]}
    common = {"CLUSTER_KIT_BEACON": f"127.0.0.1:{free_port()}", "CLUSTER_KIT_RETRIES": 2}
    began = time.monotonic()
    follower = run_task(
        "worker-1", cluster, "run", write(tmp_path / "f.py", MISSES_ITS_GPU), **common
    )
    leader = run_task(
        "worker-0", cluster, "run", write(tmp_path / "l.py", "time.sleep(60)"), **common
    )
    assert (follower.wait(60), leader.wait(60)) == (3, 3)
    assert time.monotonic() - began < 30
    for name in ("worker-0", "worker-1"):
        end = events(name)[-1]
        assert (end["reason"], end["tasks"]) == ("gpu-missing", ["worker-1"])
        assert end["message"] == "worker-1 was promised GPU 1, sees none"


def test_a_program_without_its_gpu_is_not_retried(run_task, events, program):
    path = program("import pathlib\n" + MISSES_ITS_GPU)
    assert run_task("chief-0", ALONE, "run", path, CLUSTER_KIT_RETRIES=2).wait(60) == 3
    assert [event["event"] for event in events("chief-0")] == ["start", "ready", "end"]
