"""Tasks that crash come back, and the training still ends well."""

from __future__ import annotations

import docker

from tests.e2e.evidence import restarts
from tests.e2e.running import kill_task, needs_root, read_until, running
from tests.kit import Kit

LONGER = ("--args=--epochs 5 --steps-per-epoch 40", "--set", "deadline.evaluator_grace=180")
"""The evaluator has the lowest priority: beside other tests' clusters it takes its time."""


@needs_root
def test_crashed_tasks_come_back_and_training_ends_well(
    kit: Kit, client: docker.DockerClient
) -> None:
    with running(kit, "up", "smoke", "--name", kit.name, *LONGER) as process:
        for victim, epoch in (("ps-0", 1), ("chief-0", 3)):
            read_until(process, f"epoch {epoch}/5")
            kill_task(client, kit, victim)
        said, _ = process.communicate(timeout=300)
    assert process.returncode == 0, said
    assert "epoch 5/5" in said, "the chief's log was lost"
    assert min(restarts(kit)[task] for task in ("ps-0", "chief-0")) >= 1
    outcome = kit.outcome()
    assert outcome["blame"] is None
    assert outcome["metrics"]["validation_accuracy"] > 0.8
