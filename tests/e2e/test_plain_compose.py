"""The generated file without the kit: `docker compose up` in its directory, and nothing else."""

from __future__ import annotations

import subprocess
from pathlib import Path

import docker
import pytest

from tests.kit import Kit, mine


def compose(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["docker", "compose", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def test_docker_compose_up_ends_with_exit_code_0_of_every_task(
    kit: Kit, client: docker.DockerClient
) -> None:
    short = "--args=--epochs 1 --steps-per-epoch 5"
    fed = ("--data-workers", "1", "--set", "addressing=name")  # names have underscores, too
    assert kit.run("render", "smoke", "--name", kit.name, short, *fed).returncode == 0
    folder = kit.root / "compose" / kit.name
    assert compose(folder, "config", "--quiet").returncode == 0
    done = compose(folder, "up")
    assert done.returncode == 0, done.stderr
    containers, _ = mine(client, kit.name)
    codes = {c.attrs["Config"]["Hostname"]: c.attrs["State"]["ExitCode"] for c in containers}
    feeding = {"data_dispatcher-0": 0, "data_worker-0": 0}
    assert codes == {"chief-0": 0, "worker-0": 0, "ps-0": 0, "evaluator-0": 0, **feeding}
    assert (folder / "output" / "model").is_dir()
    assert not (folder / "output" / "data-service").exists()
    assert compose(folder, "down").returncode == 0
    assert mine(client, kit.name) == ([], [])


@pytest.mark.parametrize("code", [1, 3])
def test_the_chiefs_exit_code(kit: Kit, code: int) -> None:
    program = kit.program(f"import sys\nprint('I give up')\nsys.exit({code})\n")
    made = kit.run("render", "smoke", "--name", kit.name, "--program", program)
    assert made.returncode == 0, made.stderr
    folder = kit.root / "compose" / kit.name
    done = compose(folder, "up", "--attach", "chief-0", "--exit-code-from", "chief-0")
    assert done.returncode == code, done.stderr
    assert "I give up" in done.stdout
    waited = subprocess.run(
        ["docker", "wait", f"{kit.name}-chief-0"], capture_output=True, text=True, timeout=60
    )
    assert waited.stdout.strip() == str(code)
    compose(folder, "down")
