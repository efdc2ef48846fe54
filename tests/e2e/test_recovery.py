"""Tasks that crash come back, and the training still ends well."""

from __future__ import annotations

import docker
import pytest

from tests.e2e.evidence import restarts
from tests.e2e.running import kill_task, needs_root, read_until, running
from tests.kit import Kit

LONGER = ("--args=--epochs 5 --steps-per-epoch 40", "--set", "deadline.evaluator_grace=180")
"""The evaluator has the lowest priority: beside other tests' clusters it takes its time."""


@pytest.mark.parametrize("victim", ["ps-0", "chief-0"])
@needs_root
def test_a_crashed_task_comes_back_and_training_ends_well(
    kit: Kit, client: docker.DockerClient, victim: str
) -> None:
    with running(kit, "up", "smoke", "--name", kit.name, *LONGER) as process:
        read_until(process, "epoch 1/5")
        kill_task(client, kit, victim)
        said, _ = process.communicate(timeout=300)
    assert process.returncode == 0, said
    assert "epoch 5/5" in said, "the chief's log was lost"
    assert restarts(kit)[victim] >= 1
    outcome = kit.outcome()
    assert outcome["blame"] is None
    assert outcome["metrics"]["validation_accuracy"] > 0.8
