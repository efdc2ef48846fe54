"""Synchronous rounds on parameter servers: a crash costs time, but no update."""

from __future__ import annotations

import docker
import pytest

from tests.e2e.drilled import drilled
from tests.e2e.evidence import restarts
from tests.kit import Kit


@pytest.mark.more
def test_every_update_is_made_once_whichever_task_crashes(
    kit: Kit, client: docker.DockerClient
) -> None:
    sync = ("--workers", "2", "--set", "evaluator=0",
            "--args=--update sync --epochs 8 --steps-per-epoch 40")  # fmt: skip
    drilled(kit, client, "smoke", (("crash", "worker-1", ""), ("crash", "ps-0", "")), *sync)
    assert min(restarts(kit)[task] for task in ("worker-1", "ps-0")) >= 1
    metrics = kit.outcome()["metrics"]
    assert (metrics["updates"], metrics["staleness_max"]) == (320, 0)
    assert metrics["test_accuracy"] > 0.8
