"""Synchronous rounds on parameter servers: a crash costs time, never an update."""

from __future__ import annotations

import docker
import pytest

from tests.e2e.evidence import restarts
from tests.e2e.running import kill_task, needs_root, read_until, running
from tests.kit import Kit


@pytest.mark.parametrize("victim", ["worker-1", "ps-0"])
@needs_root
def test_every_update_is_made_once_whoever_crashes(
    kit: Kit, client: docker.DockerClient, victim: str
) -> None:
    sync = ("--workers", "2", "--args=--update sync --epochs 4 --steps-per-epoch 40")
    with running(kit, "up", "smoke", "--name", kit.name, *sync) as process:
        read_until(process, "epoch 2/4")
        kill_task(client, kit, victim)
        said, _ = process.communicate(timeout=200)
    assert process.returncode == 0, said
    assert restarts(kit)[victim] >= 1
    metrics = kit.outcome()["metrics"]
    assert (metrics["updates"], metrics["staleness_max"]) == (160, 0)
    assert metrics["validation_accuracy"] > 0.8
