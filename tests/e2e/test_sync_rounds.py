"""Synchronous rounds on parameter servers: a crash costs time, never an update."""

from __future__ import annotations

import os
import signal

import docker
import pytest

from tests.e2e.test_recovery import pid_of
from tests.kit import Kit


@pytest.mark.parametrize("victim", ["worker-1", "ps-0"])
@pytest.mark.skipif(os.geteuid() != 0, reason="killing a container's process takes root")
def test_every_update_is_made_once_whoever_crashes(
    kit: Kit, client: docker.DockerClient, victim: str
) -> None:
    process = kit.start(
        "up", "smoke", "--name", kit.name, "--workers", "2",
        "--args=--update sync --epochs 4 --steps-per-epoch 40",
    )  # fmt: skip
    try:
        assert process.stdout is not None
        next(line for line in process.stdout if "epoch 2/4" in line)
        os.kill(pid_of(client, kit, victim), signal.SIGKILL)
        said, _ = process.communicate(timeout=200)
    finally:
        process.kill()
    assert process.returncode == 0, said
    outcome = kit.outcome()
    assert {t["name"]: t["restarts"] for t in outcome["tasks"]}[victim] >= 1
    metrics = outcome["metrics"]
    assert (metrics["updates"], metrics["staleness_max"]) == (160, 0)
    assert metrics["validation_accuracy"] > 0.8
