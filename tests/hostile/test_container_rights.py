"""A program that prepares traps for the commands that the host runs in its container gains no
right."""

from __future__ import annotations

import contextlib
import json
import subprocess
from typing import Any

import docker
import pytest

from cluster_kit.image.kit_image import image_tag
from tests.e2e.running import read_until, running
from tests.kit import Kit, mine, why_no_engine

WHY_NOT = why_no_engine()
pytestmark = [pytest.mark.engine, pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)]

TRAP = """
import os, pathlib
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
text = f"{__file__} {os.getpid()} {status['CapEff'].strip()} {os.getresuid()}\\n"
with open("/output/trapped", "a") as file:
    file.write(text)
"""
PROGRAM = f"""
import os, pathlib, shutil, time
TRAP = {TRAP!r}
for folder in ("/tmp", "/output"):
    for name in ("trainer/__init__.py", "trainer/__main__.py", "sitecustomize.py", "json.py",
                 "signal.py", "contextlib.py"):
        file = pathlib.Path(folder, name)
        file.parent.mkdir(exist_ok=True)
        file.write_text(TRAP)
deep = pathlib.Path("/output/d")
deep.mkdir(mode=0o777, exist_ok=True)
shutil.copy("/bin/true", deep / "shell")
(deep / "shell").chmod(0o6755)
print("traps are laid", flush=True)
until = time.monotonic() + 120
while not pathlib.Path("/output/over").exists() and time.monotonic() < until:
    time.sleep(0.05)
"""


def test_commands_of_the_host_inside_a_task_have_only_the_tasks_rights(kit: Kit) -> None:
    arguments = (
        *("up", "quickstart", "--name", kit.name, "--program", kit.program(PROGRAM)),
        *("--style", "all-tasks", "--workers", "1", "--ps", "0", "--set", "evaluator=0"),
        *("--set", "args=[]", "--set", 'role.chief.bandwidth="1gbit"'),
        *("--set", 'sidecar.beside.command=["sleep", "100"]'),
    )
    output = kit.root / "runs" / kit.name / "latest" / "output"
    with running(kit, *arguments) as process:
        read_until(process, "traps are laid")
        with contextlib.closing(docker.from_env()) as client:
            containers = {
                one.labels.get("cluster-kit.role"): one.attrs for one in mine(client, kit.name)[0]
            }
        assert output.parent.stat().st_mode & 0o777 == 0o700, "others cannot start what lies there"
        stacks = kit.run("stacks", kit.name)
        assert stacks.returncode == 0 and "train.py" in stacks.stdout, stacks.stdout
        # It has no server: it reports that, or traces.
        kit.run("profile", kit.name, "--seconds", "1")
        told = kit.run("exec", "chief-0", "--name", kit.name, "--", "cat", "/proc/self/status")
        assert told.returncode == 0, told.stderr
        assert {line.split()[1] for line in told.stdout.splitlines() if line.startswith("Cap")} == {
            "0" * 16
        }, "as the task, also if its container has some to limit the bandwidth"
        missing = kit.run("exec", "chief-0", "--name", kit.name, "--", "no-such-program")
        assert missing.returncode == 127 and "no-such-program" in missing.stderr
        (output / "over").touch()
        printed = process.communicate(timeout=120)[0]
        assert process.returncode == 0, printed
    assert output.parent.stat().st_mode & 0o777 == output.parents[1].stat().st_mode & 0o777
    trapped = output / "trapped"
    assert not trapped.exists(), trapped.read_text()
    assert [oct(f.stat().st_mode & 0o7000) for f in output.rglob("shell")] == ["0o0"]
    for attributes in containers.values():
        check_bounds(attributes["HostConfig"])
    assert containers[None]["HostConfig"]["CapDrop"] == ["ALL"], "the sidecar, too"
    assert containers[None]["HostConfig"]["ReadonlyRootfs"]


def check_bounds(given: dict[str, Any]) -> None:
    assert given["PidsLimit"] == 4096
    assert "no-new-privileges:true" in given["SecurityOpt"]
    assert f"size={4 << 30}" in given["Tmpfs"]["/tmp"]
    assert given["LogConfig"]["Type"] == "json-file"
    assert given["LogConfig"]["Config"] == {"max-size": str(128 << 20), "max-file": "2"}


def test_no_program_of_the_image_runs_as_its_owner_and_tasks_start_where_they_cannot_write() -> (
    None
):
    code = (
        "import os, stat, json\n"
        "found = [os.path.join(d, f) for d, _, fs in os.walk('/') if not d.startswith('/proc')\n"
        "         for f in fs if os.lstat(os.path.join(d, f)).st_mode & 0o6000]\n"
        "print(json.dumps([found, os.getcwd()]))"
    )
    run = ("docker", "run", "--rm", "--network=none", "--entrypoint=python3", image_tag("cpu"))
    done = subprocess.run([*run, "-c", code], capture_output=True, text=True, timeout=120)
    assert json.loads(done.stdout) == [[], "/"], done.stderr
