"""The daily loop on real containers: docs/daily.md, on one small cluster.

The fakes have all moments: tests/unit/run/, tests/unit/cli/.
"""

from __future__ import annotations

import json
import signal
import subprocess

import docker

from tests.e2e.running import running
from tests.e2e.waiting import wait_for
from tests.kit import Kit, mine

WAITS = """
import pathlib, sys, time
while not pathlib.Path("code").exists():
    time.sleep(0.05)
sys.exit(int(pathlib.Path("code").read_text()))
"""
"""It imports no TensorFlow: what is tried here is around it."""


def test_a_day_with_one_cluster(kit: Kit, client: docker.DockerClient) -> None:
    small = ("--program", kit.program(WAITS), "--set", "evaluator=0", "--name", kit.name)
    up = kit.run("up", "smoke", "--detach", *small)
    assert up.returncode == 0, up.stderr
    enter(kit)
    interrupt(kit)
    assert inside(kit, "chief-0", "sh", "-c", "echo 41 > code").returncode == 0
    ended = kit.run("wait", kit.name, "--exit-code", "program")
    assert (ended.returncode, kit.outcome()["exit_code"]) == (41, 5), ended.stdout
    assert kit.outcome()["program_exit_code"] == 41
    assert mine(client, kit.name) == ([], [])


def inside(kit: Kit, task: str, *command: str) -> subprocess.CompletedProcess[str]:
    return kit.run("exec", task, "--name", kit.name, "--", *command)


def enter(kit: Kit) -> None:
    told = inside(kit, "worker-0", "python3", "-c", "import os; print(os.environ['TF_CONFIG'])")
    assert json.loads(told.stdout)["task"] == {"type": "worker", "index": 0}, told.stderr
    assert inside(kit, "chief-0", "sh", "-c", "pwd >&2; exit 9").returncode == 9
    lacking = inside(kit, "chief-0", "no-such-program")
    assert lacking.returncode in (126, 127), lacking
    assert "no-such-program" in lacking.stdout + lacking.stderr
    shell = subprocess.run(
        kit.command("shell", "ps-0", "--name", kit.name),
        cwd=kit.root, env=kit.environment, input="hostname; touch here; exit 3\n",
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (shell.stdout, shell.returncode) == ("ps-0\n", 3), shell.stderr
    assert (kit.root / "runs" / kit.name / "latest" / "output" / "here").exists()


def interrupt(kit: Kit) -> None:
    """Ctrl-C ends the command in the container, too."""
    sleeps = ("sh", "-c", "echo begun; exec sleep 300")
    with running(kit, "exec", "chief-0", "--name", kit.name, "--", *sleeps) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 130

    def gone() -> bool:
        return "sleep" not in inside(kit, "chief-0", "sh", "-c", "cat /proc/*/comm").stdout

    wait_for("the end of the interrupted command", gone)
