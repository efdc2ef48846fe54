"""Supervisors with toy programs, as real processes: exit codes, reasons, deadlines, signals."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from conftest import IMAGE
from reading import programs_lines
from waiting import wait_for

from trainer.contract.times import STOP_GRACE_S

ALONE = {"chief": ["127.0.0.1:1"]}
EVALUATOR = {"evaluator": ["127.0.0.1:1"]}


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


def test_a_programs_own_message_is_kept_whole_and_reported_once(run_task, events, program):
    says = "a.toml: 1 problem\n  x = 1: no such key"
    path = program(
        f"says = {says!r}; print('error:', says)\n"
        "open(os.environ['CLUSTER_KIT_MAILBOX'] + '/last-words', 'w').write(says + ' \\n\\n')\n"
        "sys.exit(2)"
    )
    task = run_task("chief-0", ALONE, "run", path)
    assert task.wait(60) == 2
    assert events("chief-0")[-1]["message"] == says
    lines = ["error: a.toml: 1 problem", "  x = 1: no such key"]
    assert task.stdout.read().splitlines() == lines


def test_a_killed_program_is_restarted(run_task, events, program, tmp_path):
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


def test_a_program_that_fails_soon_after_its_leader_was_lost_is_retried_once(
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


def test_a_program_that_fails_after_its_machine_slept_is_started_again(
    run_task, events, program, tmp_path
):
    mark = tmp_path / "mark"
    path = program(
        f"m = {str(mark)!r}\n"
        "if os.path.exists(m): sys.exit(0)\n"
        "open(m, 'w').close()\n"
        "time.sleep(1.5)\n"
        "os.kill(os.getppid(), 19)\n"
        "time.sleep(6)\n"
        "os.kill(os.getppid(), 18)\n"
        "sys.exit(1)"
    )
    assert run_task("chief-0", ALONE, "run", path, CLUSTER_KIT_RETRIES=1).wait(60) == 0
    (retry,) = [event for event in events("chief-0") if event["event"] == "retry"]
    assert retry["reason"].startswith("chief-0 had stood still for ")


def test_retries_are_bounded(run_task, events, program):
    path = program("os.kill(os.getpid(), 9)")
    assert run_task("chief-0", ALONE, "run", path, CLUSTER_KIT_RETRIES=1).wait(60) == 137
    assert events("chief-0")[-1]["reason"] == "failed"
    assert "1 of 1 retries used" in events("chief-0")[-1]["message"]


def test_the_job_deadline(run_task, events, program):
    path = program("time.sleep(60)")
    task = run_task("chief-0", ALONE, "run", path, CLUSTER_KIT_JOB_DEADLINE_S=0.3)
    assert task.wait(60) == 6
    end = events("chief-0")[-1]
    assert end["reason"] == "job-deadline"
    assert end["message"].endswith(
        "after 0.3 s; where each task stands is in stacks/ of the output"
    )


def test_at_the_job_deadline_the_threads_are_named_that_keep_the_program_from_ending(
    run_task, events, program
):
    path = program(
        "with open(os.environ['CLUSTER_KIT_MAILBOX'] + '/threads', 'w') as file:\n"
        "    file.write('its main thread has ended, but not Thread-1')\n"
        "time.sleep(60)"
    )
    assert run_task("chief-0", ALONE, "run", path, CLUSTER_KIT_JOB_DEADLINE_S=6).wait(60) == 6
    assert events("chief-0")[-1]["message"] == (
        "the program had not ended after 6 s: its main thread has ended, but not Thread-1"
    )


def test_at_the_job_deadline_the_stacks_are_saved(run_task, tmp_path, program):
    path = program("def waits_for_nobody():\n    time.sleep(60)\nwaits_for_nobody()")
    task = run_task("chief-0", ALONE, "run", path, CLUSTER_KIT_JOB_DEADLINE_S=6)
    assert task.wait(60) == 6
    (kept,) = tmp_path.rglob("stacks/chief-0.txt")
    assert "in waits_for_nobody" in kept.read_text()


@pytest.mark.parametrize("deaf", [False, True])
def test_sigterm_ends_a_program_long_before_the_engine_would_kill_it(
    run_task, events, program, tmp_path, deaf
):
    ready = tmp_path / "ready"
    deafness = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" if deaf else ""
    path = program(f"{deafness}open({str(ready)!r}, 'w').close()\ntime.sleep(60)")
    task = run_task("chief-0", ALONE, "run", path)
    wait_for(ready.exists)
    task.terminate()
    assert task.wait(STOP_GRACE_S / 2) == 143
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


HOOKED = (
    "import json\n"
    "print(json.dumps([os.environ['PYTHONPATH'], 'AfterImport' in str(sys.meta_path)]))\n"
)


@pytest.mark.parametrize(
    ("name", "value"),
    [("GPUS", '["GPU 0"]'), ("GPU_MEMORY_MB", 2), ("SIMULATE_GPUS", 2), ("RETRIES", 2)],
)
def test_imports_are_watched_and_no_module_of_the_user_is_hidden(
    run_task, program, tmp_path, name, value
):
    """The user's PYTHONPATH, sitecustomize and a module called trainer still work."""
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


def test_usage_of_the_command():
    from trainer.__main__ import main

    assert main([]) == main(["dance"]) == 2


def test_files_that_a_program_writes_to_its_directory_are_kept(run_task, tmp_path):
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "program.py").write_text("open('mine.txt', 'w').write('kept')")
    path = str(tmp_path / "code" / "program.py")
    assert run_task("chief-0", {"chief": ["127.0.0.1:1"]}, "run", path).wait(60) == 0
    assert (tmp_path / "mine.txt").read_text() == "kept"
