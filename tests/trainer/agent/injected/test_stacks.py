"""The stacks of a program's threads, whatever the program is doing."""

from __future__ import annotations

import sys

from trainer.agent.injected import stacks

ALONE = {"chief": ["127.0.0.1:1"]}
SPINS = """
import os, subprocess, sys, threading, pathlib
def spin():
    while True: pass
threading.Thread(target=spin, daemon=True).start()
subprocess.run([sys.executable, "-c", "pass"])
pathlib.Path({ready!r}).touch()
threading.Event().wait()
"""


def test_a_running_program_prints_all_its_threads_each_time(run_task, tmp_path):
    import time

    ready = tmp_path / "ready"
    (tmp_path / "program.py").write_text(SPINS.format(ready=str(ready)))
    run_task("chief-0", ALONE, "run", str(tmp_path / "program.py"))
    until = time.monotonic() + 30
    while not ready.exists() and time.monotonic() < until:
        time.sleep(0.02)
    for _ in range(2):
        output = run_task("chief-0", ALONE, "stacks").communicate(timeout=30)[0]
        assert "in spin" in output and 'program.py"' in output, output
        assert output.count("most recent call first") >= 2


def test_a_missing_program_has_no_stacks(run_task):
    output = run_task("chief-0", ALONE, "stacks", anew=True).communicate(timeout=30)[0]
    assert "nothing runs yet" in output


def test_a_program_that_has_ended_has_no_stacks(run_task, tmp_path):
    (tmp_path / "program.py").write_text("pass")
    assert run_task("chief-0", ALONE, "run", str(tmp_path / "program.py")).wait(30) == 0
    output = run_task("chief-0", ALONE, "stacks").communicate(timeout=30)[0]
    assert "no Python program answers" in output, output


def test_the_first_process_keeps_the_file(tmp_path):
    file = tmp_path / "stacks"
    (tmp_path / "stacks.pid").write_text("1")
    stacks.arm(str(file))
    assert (tmp_path / "stacks.pid").read_text() == "1"
    assert not file.exists(), sys.executable


def test_a_crashing_program_prints_its_stack(run_task, tmp_path, events):
    """After the last retry, the stack of a crash is not reported twice."""
    program = tmp_path / "program.py"
    program.write_text(
        "def reads_zero():\n    import ctypes\n    ctypes.string_at(0)\nreads_zero()\n"
    )
    task = run_task("chief-0", ALONE, "run", str(program), CLUSTER_KIT_RETRIES=1)
    output = task.communicate(timeout=60)[0]
    assert "Fatal Python error: Segmentation fault" in output
    assert 'program.py", line 3 in reads_zero' in output
    message = events("chief-0")[-1]["message"]
    assert message == "the program was killed by SIGSEGV (1 of 1 retries used)"
