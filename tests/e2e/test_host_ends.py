"""What the host does to a run: a full disk, another clone, a `down`.

The fake engine covers all moments: tests/unit/run/test_disk_space.py, test_claim.py,
test_take_down.py.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from tests.e2e.running import read_until, running
from tests.kit import Kit, mine, new_kit

FILLS = """import pathlib
print("begun")
for number in range(10_000):
    pathlib.Path(f"part-{number}").write_bytes(bytes(100_000))
"""
LONG = ("--set", "evaluator=0", "--args=--epochs 500 --steps-per-epoch 20")


@pytest.fixture
def small_disk(kit: Kit) -> Iterator[Path]:
    """Put the workspace's runs on a separate disk with room for 4 MB."""
    runs = kit.root / "runs"
    runs.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(runs)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no small disk can be mounted here: {done.stderr}")
    yield runs
    subprocess.run(["umount", "-l", str(runs)], check=False)


def test_a_program_that_fills_the_disk(
    kit: Kit, client: docker.DockerClient, small_disk: Path
) -> None:
    only = ("--workers", "1", "--ps", "0", "--chief", "0", "--set", "evaluator=0")
    done = kit.run("up", "smoke", "--name", kit.name, *only, "--program", kit.program(FILLS))
    assert done.returncode == 3, done.stdout + done.stderr
    outcome = kit.outcome()
    assert (outcome["reason"], outcome["blame"]) == ("disk-full", None)
    output = small_disk.resolve() / kit.name
    assert f"the disk of {output}" in outcome["message"]
    assert "of 4 MB free" in outcome["message"]
    assert "cluster_kit/" not in done.stderr
    assert (small_disk / kit.name / "latest" / "logs" / "worker-0.log").stat().st_size
    assert mine(client, kit.name) == ([], [])


def test_a_second_clone_is_refused_and_down_ends_the_first(
    kit: Kit, client: docker.DockerClient, tmp_path: Path
) -> None:
    clone = Kit(new_kit(tmp_path / "clone", "e2e").root, kit.name)
    with running(kit, "up", "smoke", "--name", kit.name, *LONG) as process:
        read_until(process, "running")
        second = clone.run("up", "smoke", "--name", kit.name, *LONG)
        assert second.returncode == 3
        assert f"by process {process.pid}" in second.stderr
        assert str(kit.root / "runs" / kit.name) in second.stderr
        assert not (clone.root / "runs").exists()
        read_until(process, "epoch 1/")
        down = clone.run("down", kit.name)
        assert down.returncode == 0, down.stderr
        assert process.stdout is not None
        output = process.stdout.read()
        assert process.wait(timeout=30) == 7
        assert "stopped after " in output and "blame" not in output and "failed" not in output
    outcome = kit.outcome()
    assert (outcome["reason"], outcome["blame"]) == ("stopped", None)
    logs = kit.root / "runs" / kit.name / "latest" / "logs"
    assert "epoch 1/" in (logs / "chief-0.log").read_text()
    assert mine(client, kit.name) == ([], [])
