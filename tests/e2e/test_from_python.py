"""The Python API on a real engine: a coordinator on the host, as in docs/python.md; a frozen
task."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import docker
import pytest

import cluster_kit as ck
from tests.e2e.waiting import wait_for
from tests.kit import Kit, mine
from tests.make import ROOT

PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
(COORDINATOR,) = re.findall(r"```python coordinator\n(.*?)```", PAGE, re.DOTALL)
TIMEOUT_S = 120


def on_the_host(folder: Path, image: str, environment: dict[str, str]) -> str:
    """Returns the output of the page's coordinator, run in the image on the host's own network."""
    (folder / "coordinator.py").write_text(COORDINATOR)
    done = subprocess.run(
        [
            *("docker", "run", "--rm", "--init", "--network=host", f"--user={os.getuid()}"),
            *(f"--env={name}={value}" for name, value in environment.items()),
            *("--env=http_proxy=http://127.0.0.1:9", f"--volume={folder}:/here", "--workdir=/here"),
            *("--entrypoint=python3", image, "coordinator.py"),
        ],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def restarted(cluster: ck.RunningCluster, name: str) -> bool:
    (task,) = [task for task in cluster.tasks() if task.name == name]
    return (task.state, task.restarts) == ("running", 1)


def test_a_coordinator_on_the_host_drives_workers_and_ps(
    kit: Kit, client: docker.DockerClient, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with ck.cluster("smoke", root=kit.root, name=kit.name, chief="host") as cluster:
        output = on_the_host(tmp_path, cluster.cluster.image, cluster.environment())
        assert "[20. 20. 20. 20.]" in output
        assert (tmp_path / "weights.index").exists(), "the checkpoint is not on the host"
        assert "worker-0" in cluster.exec("worker-0", "hostname")
        failed = cluster.exec("worker-0", "sh", "-c", "echo no; exit 9")
        assert (failed, failed.exit_code) == ("no\n", 9)
        with cluster.frozen("ps-0"):
            assert {task.name: task.state for task in cluster.tasks()} == {
                "chief-0": "running", "worker-0": "running", "ps-0": "paused",
            }  # fmt: skip
            with pytest.raises(ck.UsageError, match="ps-0 is frozen"):
                cluster.exec("ps-0", "true")
        assert "ps-0" in cluster.exec("ps-0", "hostname")
        cluster.crash("worker-0")
        wait_for("worker-0 again", lambda: restarted(cluster, "worker-0"))
        with pytest.raises(ck.HostError, match=f"the cluster {kit.name} is already up"):
            ck.load("smoke", root=kit.root, name=kit.name).run()
        outcome = cluster.wait()
    assert outcome.success, outcome.message
    assert mine(client, kit.name) == ([], [])
    assert capfd.readouterr() == ("", "")
