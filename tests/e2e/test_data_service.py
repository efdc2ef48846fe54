"""tf.data service: the classifier's input is prepared by data workers, whoever of them dies."""

from __future__ import annotations

import docker
import pytest

from tests.e2e.drilled import drilled
from tests.e2e.evidence import codes, log, output, restarts
from tests.kit import Kit

LONG = ("--data-workers", "2", "--args=--epochs 12 --steps-per-epoch 100")
LONGER = "--args=--epochs 40 --steps-per-epoch 100"


@pytest.mark.more
def test_training_goes_on_whichever_of_the_services_tasks_dies(
    kit: Kit, client: docker.DockerClient
) -> None:
    tasks = ("data_worker-0", "data_dispatcher-0")
    drilled(kit, client, "smoke", [("crash", task, "") for task in tasks], *LONG)
    assert all(restarts(kit)[task] >= 1 for task in tasks)
    assert set(codes(kit).values()) == {0}
    assert kit.outcome()["notes"] == []
    assert kit.outcome()["metrics"]["validation_accuracy"] > 0.8
    for task in (*tasks, "data_worker-1"):
        assert "tf.data service ready" in log(kit, task)
    assert not (output(kit) / "data-service").exists()


@pytest.mark.more
def test_training_goes_on_whichever_of_the_services_tasks_freezes_or_is_cut_off(
    kit: Kit, client: docker.DockerClient
) -> None:
    tasks = ("data_worker-0", "data_dispatcher-0")
    faults = [(kind, task, "") for task in tasks for kind in ("freeze", "cut")]
    waits = ("--set", "deadline.job=600", "--set", "deadline.evaluator_grace=180")
    found = drilled(kit, client, "smoke", faults, "--data-workers", "2", *waits, LONGER)
    assert {(fault["detected_by"], fault["restarts"]) for fault in found.faults} == {("silent", 1)}
    assert set(codes(kit).values()) == {0}
    assert all(restarts(kit)[task] == 2 for task in tasks)
