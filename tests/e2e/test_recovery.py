"""Tasks that crash come back, and the training still ends well."""

from __future__ import annotations

import os
import signal
from typing import Any

import docker
import pytest

from tests.e2e.waiting import wait_for
from tests.kit import Kit, mine

LONGER = "--args=--epochs 5 --steps-per-epoch 40"


@pytest.mark.parametrize("victim", ["worker-0", "ps-0", "chief-0"])
@pytest.mark.skipif(os.geteuid() != 0, reason="killing a container's process takes root")
def test_a_crashed_task_comes_back_and_training_ends_well(
    kit: Kit, client: docker.DockerClient, victim: str
) -> None:
    process = kit.start("up", "smoke", "--name", kit.name, LONGER)
    try:
        assert process.stdout is not None
        next(line for line in process.stdout if "epoch 1/5" in line)
        os.kill(pid_of(client, kit, victim), signal.SIGKILL)
        said, _ = process.communicate(timeout=180)
    finally:
        process.kill()
    assert process.returncode == 0, said
    assert "epoch 5/5" in said, "the chief's log was lost"
    outcome = kit.outcome()
    restarts = {task["name"]: task["restarts"] for task in outcome["tasks"]}
    assert restarts[victim] >= 1, restarts
    assert outcome["blame"] is None
    assert outcome["metrics"]["validation_accuracy"] > 0.8


def pid_of(client: docker.DockerClient, kit: Kit, task: str) -> int:
    """The container's first process: `docker kill` would count as a stop by hand."""

    def look() -> Any:
        for container in mine(client, kit.name)[0]:
            if container.attrs["Config"]["Hostname"] == task:
                return container.attrs["State"]["Pid"]
        return None

    return int(wait_for(f"the process of {task}", look))
