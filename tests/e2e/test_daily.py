"""The daily loop (docs/daily.md) on real containers, on one small cluster.

The fakes cover all moments: tests/unit/run/, tests/unit/cli/.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
from pathlib import Path

import docker

from tests.e2e.dap import Debugger
from tests.e2e.live_page import asked, looked_at, sees, url_in
from tests.e2e.running import read_until, running
from tests.e2e.waiting import wait_for
from tests.kit import Kit, mine
from tests.ports import free_port

WAITS = """
import pathlib, sys, time
while not pathlib.Path("code").exists():
    time.sleep(0.05)
sys.exit(int(pathlib.Path("code").read_text()))
"""
"""It does not import TensorFlow, since this tests what is around a program."""


def test_a_day_with_one_cluster(kit: Kit, client: docker.DockerClient) -> None:
    small = ("--program", kit.program(WAITS), "--set", "evaluator=0", "--name", kit.name)
    up = kit.run("up", "smoke", "--detach", *small)
    assert up.returncode == 0, up.stderr
    enter(kit)
    interrupt(kit)
    with looked_at(kit) as page:
        again(kit, client)
        if page:
            sees(page, ".badge", "failed")
            assert page.complaints == []
    outcome = kit.outcome()
    assert (outcome["exit_code"], outcome["program_exit_code"]) == (5, 41)
    restarts = {task["name"]: task["restarts"] for task in outcome["tasks"]}
    assert restarts == {"chief-0": 1, "worker-0": 3, "ps-0": 1}
    *waited, killed, worker, all_tasks = outcome["notes"]
    assert all(re.match("training waited (for|.* for) worker-0", note) for note in waited), waited
    assert killed.startswith("worker-0 was killed at ") and "from the page" in killed
    assert worker.startswith("worker-0 was restarted at ")
    assert all_tasks.startswith("the cluster was stopped at ")
    assert mine(client, kit.name) == ([], [])
    watch(kit, small)
    assert mine(client, kit.name) == ([], [])
    debug(kit, client, small)
    assert mine(client, kit.name) == ([], [])


def watch(kit: Kit, small: tuple[str, ...]) -> None:
    """Watch runs: one ends normally, one is broken, one is changed while it runs; then Ctrl-C."""
    kit.program("print('one')\n")
    with running(kit, "up", "smoke", "--watch", "--serve", *small) as process:
        asked(url_in(read_until(process, "live page: ")))
        read_until(process, "success in ")
        read_until(process, "waiting for a change")
        kit.program("print(\n")
        read_until(process, "was never closed")
        kit.program(WAITS)
        read_until(process, "ready")
        kit.program("print('two')\n")
        read_until(process, "its files have changed")
        read_until(process, "success in ")
        read_until(process, "waiting for a change")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 130


def debug(kit: Kit, client: docker.DockerClient, small: tuple[str, ...]) -> None:
    """A breakpoint in a file of the host is reached, a value is read and changed, the run
    continues."""
    port = free_port()
    program = Path(kit.program("answer = 41\nprint('before')\nprint('answer', answer)\n"))
    with running(kit, "up", "smoke", "--debug", f"chief-0:{port}", *small) as process:
        read_until(process, f"chief-0 | waits for a debugger on 127.0.0.1:{port}")
        published = [c.attrs["HostConfig"]["PortBindings"] for c in mine(client, kit.name)[0]]
        chief = {"5678/tcp": [{"HostIp": "127.0.0.1", "HostPort": str(port)}]}
        assert [ports for ports in published if ports] == [chief]
        with Debugger(port) as debugger:
            frame = debugger.stop_at(program, 3)
            seen = debugger.ask("evaluate", expression="answer", frameId=frame)
            assert seen["result"] == "41"
            debugger.ask("evaluate", expression="answer = 42", frameId=frame, context="repl")
            debugger.ask("continue", threadId=debugger.thread)
            read_until(process, "answer 42")
            read_until(process, "success in ")
        assert process.wait(timeout=30) == 0


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


def again(kit: Kit, client: docker.DockerClient) -> None:
    """Restart tasks while `up` watches: nothing is lost, and nothing is reported as a crash."""
    before = addresses(client, kit)
    with running(kit, "attach", kit.name, "--exit-code", "program") as watch:
        read_until(watch, "running")
        for words in (("restart", "worker-0"), ("stop",), ("start",)):
            told = kit.run(*words, *(("--name", kit.name) if len(words) > 1 else (kit.name,)))
            assert told.returncode == 0, told.stderr
            stopped = {c.status for c in mine(client, kit.name)[0]} == {"exited"}
            assert stopped == (words == ("stop",))
        read_until(watch, "the cluster was started again")
        assert addresses(client, kit) == before
        assert (kit.root / "runs" / kit.name / "latest" / "output" / "here").exists()
        assert inside(kit, "chief-0", "sh", "-c", "echo 41 > new && mv new code").returncode == 0
        assert watch.wait(timeout=60) == 41


def addresses(client: docker.DockerClient, kit: Kit) -> dict[str, str]:
    return {
        container.name: network["IPAMConfig"]["IPv4Address"]
        for container in mine(client, kit.name)[0]
        for network in container.attrs["NetworkSettings"]["Networks"].values()
    }


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
