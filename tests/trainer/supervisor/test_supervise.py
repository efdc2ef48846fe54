"""Supervisors with toy programs, as real processes: codes, reasons, deadlines, signals."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest
from conftest import IMAGE
from reading import programs_lines, read_until

ALONE = {"chief": ["127.0.0.1:1"]}
EVALUATOR = {"evaluator": ["127.0.0.1:1"]}


@pytest.fixture
def program(tmp_path: Path):
    """A function that writes a Python program; its path."""

    def write(text: str) -> str:
        path = tmp_path / "program.py"
        path.write_text("import os, sys, time, signal\n" + text)
        return str(path)

    return write


def wait_for(condition, seconds: float = 30.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.02)


def test_a_program_that_finishes(run_task, events, program):
    path = program("print('hello', sys.argv[1])")
    task = run_task("chief-0", ALONE, "run", path, "x", anew=True)
    assert task.wait(60) == 0
    assert "hello x" in task.stdout.read()
    found = events("chief-0")
    assert [event["event"] for event in found] == ["start", "ready", "end"]
    assert (found[-1]["reason"], found[-1]["exit_code"], found[-1]["tasks"]) == ("finished", 0, [])


def test_an_ordinary_failure_is_final(run_task, events, program):
    path = program("raise SystemExit(3)")
    assert run_task("chief-0", ALONE, "run", path, CLUSTER_KIT_RETRIES=2).wait(60) == 3
    found = events("chief-0")
    assert [event["event"] for event in found] == ["start", "ready", "failure", "end"]
    assert (found[-1]["reason"], found[-1]["exit_code"]) == ("failed", 3)
    assert "exit code 3" in found[-1]["message"]


def test_what_a_program_has_said_itself_is_kept_whole_and_said_once(run_task, events, program):
    says = "a.toml: 1 problem\n  x = 1: no such key"
    path = program(
        f"says = {says!r}; print('error:', says)\n"
        "open(os.environ['CLUSTER_KIT_MAILBOX'] + '/last-words', 'w').write(says + ' \\n\\n')\n"
        "sys.exit(2)"
    )
    task = run_task("chief-0", ALONE, "run", path)
    assert task.wait(60) == 2
    assert events("chief-0")[-1]["message"] == says
    said = ["error: a.toml: 1 problem", "  x = 1: no such key"]
    assert task.stdout.read().splitlines() == said


def test_a_killed_program_starts_again(run_task, events, program, tmp_path):
    mark = tmp_path / "mark"
    path = program(
        f"m = {str(mark)!r}\n"
        "if not os.path.exists(m): open(m, 'w').close(); os.kill(os.getpid(), 9)\n"
    )
    assert run_task("chief-0", ALONE, "run", path, CLUSTER_KIT_RETRIES=1).wait(60) == 0
    found = events("chief-0")
    assert [event["event"] for event in found] == [
        "start", "ready", "failure", "retry", "start", "ready", "end",
    ]  # fmt: skip
    assert "SIGKILL" in found[3]["reason"]
    assert found[4]["attempt"] == 2


def test_a_program_that_fails_soon_after_its_leader_was_lost_is_tried_once_more(
    run_task, program, tmp_path, events
):
    (tmp_path / "progress").mkdir()
    earlier = '{"time": 1.0, "event": "start", "attempt": 1}\n'
    (tmp_path / "progress" / "chief-0.jsonl").write_text(earlier)
    task = run_task("chief-0", ALONE, "run", program("import sys; sys.exit(1)"),
                    CLUSTER_KIT_RETRIES=3)  # fmt: skip
    assert task.wait(60) == 1
    found = [event for event in events("chief-0") if event["event"] in ("retry", "end")]
    assert [event["event"] for event in found] == ["retry", "end"]
    assert found[0]["reason"] == "chief-0 had been lost itself"


def test_retries_are_bounded(run_task, events, program):
    path = program("os.kill(os.getpid(), 9)")
    assert run_task("chief-0", ALONE, "run", path, CLUSTER_KIT_RETRIES=1).wait(60) == 137
    assert events("chief-0")[-1]["reason"] == "failed"
    assert "1 of 1 retries used" in events("chief-0")[-1]["message"]


def test_the_job_deadline(run_task, events, program):
    path = program("time.sleep(60)")
    task = run_task("chief-0", ALONE, "run", path, CLUSTER_KIT_JOB_DEADLINE_S=0.3)
    assert task.wait(60) == 6
    assert events("chief-0")[-1]["reason"] == "job-deadline"


@pytest.mark.parametrize("deaf", [False, True])
def test_sigterm_ends_within_a_second(run_task, events, program, tmp_path, deaf):
    ready = tmp_path / "ready"
    deafness = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" if deaf else ""
    path = program(f"{deafness}open({str(ready)!r}, 'w').close()\ntime.sleep(60)")
    task = run_task("chief-0", ALONE, "run", path)
    wait_for(ready.exists)
    began = time.monotonic()
    task.terminate()
    assert task.wait(5) == 143
    assert time.monotonic() - began < 1
    assert events("chief-0")[-1]["reason"] == "stopped"


def test_a_program_that_handles_sigterm_has_time_to_save(run_task, program, tmp_path):
    ready, saved = tmp_path / "ready", tmp_path / "saved"
    path = program(
        f"def save(*_):\n    time.sleep(1.5)\n    open({str(saved)!r}, 'w')\n    sys.exit()\n"
        f"signal.signal(signal.SIGTERM, save)\nopen({str(ready)!r}, 'w').close()\ntime.sleep(60)"
    )
    task = run_task("chief-0", ALONE, "run", path)
    wait_for(ready.exists)
    task.terminate()
    assert task.wait(60) == 143
    assert saved.exists()


def test_a_killed_supervisor_leaves_no_program(run_task, program, tmp_path):
    pid_file = tmp_path / "pid"
    path = program(
        f"open({str(pid_file)!r} + '~', 'w').write(str(os.getpid()))\n"
        f"os.rename({str(pid_file)!r} + '~', {str(pid_file)!r})\ntime.sleep(60)"
    )
    task = run_task("chief-0", ALONE, "run", path)
    wait_for(pid_file.exists)
    pid = int(pid_file.read_text())
    task.send_signal(signal.SIGKILL)
    task.wait()
    wait_for(lambda: not running(pid), 2)


def running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()


def test_an_unknown_program_is_named(run_task, events):
    task = run_task("chief-0", ALONE, "run", "/nowhere/train.py")
    assert task.wait(60) == 2
    assert "/nowhere/train.py" in task.stdout.read()
    assert events("chief-0")[-1]["exit_code"] == 2


def pair(run_task, free_port, leader: str, evaluator: str, **variables: object):
    """A leader and an evaluator that follows its beacon."""
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


def test_the_evaluator_hears_the_end(run_task, free_port, events, tmp_path):
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


def test_a_leader_that_never_comes(run_task, free_port, events, program):
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
    """A function that runs a program as the chief of a cluster whose ps never answers."""
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


def test_sigterm_while_it_waits_for_servers(without_its_ps, events, program):
    task = without_its_ps(program(WAITS))
    assert read_until(task, "importing") == ["before\n", "importing\n"]
    began = time.monotonic()
    task.terminate()
    assert task.wait(5) == 143
    assert time.monotonic() - began < 1
    assert "must not come" not in task.stdout.read()
    assert events("chief-0")[-1]["reason"] == "stopped"


def test_a_program_without_tensorflow_waits_for_nobody(without_its_ps, events, program):
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
    assert time.monotonic() - began < 5
    for name in ("worker-0", "worker-1"):
        end = events(name)[-1]
        assert (end["reason"], end["tasks"]) == ("gpu-missing", ["worker-1"])
        assert end["message"] == "worker-1 was promised GPU 1, sees none"


def test_a_program_without_its_gpu_is_not_tried_again(run_task, events, program):
    path = program("import pathlib\n" + MISSES_ITS_GPU)
    assert run_task("chief-0", ALONE, "run", path, CLUSTER_KIT_RETRIES=2).wait(60) == 3
    assert [event["event"] for event in events("chief-0")] == ["start", "ready", "end"]


HOOKED = (
    "import json\n"
    "print(json.dumps([os.environ['PYTHONPATH'], 'AfterImport' in str(sys.meta_path)]))\n"
)


@pytest.mark.parametrize(
    ("name", "value"),
    [("GPUS", '["GPU 0"]'), ("GPU_MEMORY_MB", 2), ("SIMULATE_GPUS", 2), ("RETRIES", 2)],
)
def test_imports_are_watched_and_nothing_is_hidden(run_task, program, tmp_path, name, value):
    """The user's PYTHONPATH, sitecustomize and a module called trainer all stay theirs."""
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import sys; sys.theirs = 'theirs'\n")
    (tmp_path / "trainer.py").write_text("WHOSE = 'theirs'\n")
    (own / "helper.py").write_text("WHOSE = 'theirs'\n")
    path = program(
        HOOKED + "import trainer, helper; print(trainer.WHOSE, helper.WHOSE, sys.theirs)"
    )
    task = run_task(
        "chief-0", ALONE, "run", path,
        PYTHONPATH=f"{IMAGE}{os.pathsep}{own}", **{f"CLUSTER_KIT_{name}": value},
    )  # fmt: skip
    assert task.wait(60) == 0, task.stdout.read()
    line, *rest = programs_lines(task.stdout.read())
    found, hooked = json.loads(line)
    assert hooked
    first, *theirs, last = found.split(os.pathsep)
    assert theirs == [str(IMAGE), str(own)]
    assert (Path(first).name, Path(last).name) == ("on_path", "for_programs")
    assert rest == ["theirs theirs theirs"]


def test_usage():
    from trainer.__main__ import main

    assert main([]) == main(["dance"]) == 2
