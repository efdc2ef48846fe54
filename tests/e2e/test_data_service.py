"""tf.data service: the classifier's input is prepared by data workers, whoever of them is lost."""

from __future__ import annotations

import docker
import pytest

from tests.e2e.drilled import drilled
from tests.e2e.evidence import codes, log, output, restarts
from tests.kit import Kit

TASKS = ("data_worker-0", "data_dispatcher-0")
KINDS = ("crash", "freeze", "cut")
LONG = (
    *("--data-workers", "2", "--set", "evaluator=0", "--set", "deadline.job=600"),
    *("--set", 'role.ps.bandwidth="200mbit"', "--args=--epochs 14 --steps-per-epoch 100"),
)
"""Longer than all faults, however fast the machine is: the ps's network allows 11 steps/s."""


@pytest.mark.more
def test_training_goes_on_whichever_of_the_services_tasks_is_lost(
    kit: Kit, client: docker.DockerClient
) -> None:
    faults = [(kind, task, "") for task in TASKS for kind in KINDS]
    found = drilled(kit, client, "smoke", faults, *LONG)
    silent = [fault for fault in found.faults if fault["kind"] != "crash"]
    assert {(fault["detected_by"], fault["restarts"]) for fault in silent} == {("silent", 1)}
    assert all(restarts(kit)[task] == len(KINDS) for task in TASKS)
    assert set(codes(kit).values()) == {0}
    notes = kit.outcome()["notes"]
    assert sum(" has been silent for " in note for note in notes) == len(silent), notes
    assert kit.outcome()["metrics"]["test_accuracy"] > 0.8
    for task in (*TASKS, "data_worker-1"):
        assert "tf.data service ready" in log(kit, task)
    assert not (output(kit) / "data-service").exists()
