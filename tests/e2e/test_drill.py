"""Faults in real containers, one after the other in one training: each does what it says, is
detected, survived and measured."""

from __future__ import annotations

import docker

from tests.e2e.drilled import drilled
from tests.e2e.evidence import events, restarts
from tests.kit import Kit

LONGER = "--args=--epochs 24 --steps-per-epoch 40"
"""The evaluator has the lowest priority: beside other tests' clusters it takes its time."""
SETS = ("--set", "deadline.silent=4", "--set", "deadline.evaluator_grace=180",
        "--set", "retries=10")  # fmt: skip
EARLY = "for = 1\nat = { step = 5 }\n"
FAULTS = (
    ("freeze", "evaluator-0", "for = 2\nat = { after = 'ready' }"),
    ("delay", "worker-0", f"{EARLY}delay = 0.02"),
    ("loss", "ps-0", f"{EARLY}percent = 1"),
    ("bandwidth", "worker-0", f"{EARLY}rate = '50mbit'"),
    ("disk-full", "worker-0", EARLY),
    ("cut", "evaluator-0", f"{EARLY}from = ['ps-0', 'worker-0']"),
    ("crash", "ps-0", ""),
    ("freeze", "worker-0", ""),
    ("cut", "ps-0", ""),
    ("slow", "worker-0", "for = 1\ncpus = 0.5"),
    ("memory", "worker-0", ""),
    ("cut", "evaluator-0", "for = 1"),
    ("stop", "evaluator-0", ""),
    ("crash", "chief-0", ""),
    ("freeze", "chief-0", ""),
)
LOST = {"crash": ("die", "failure"), "stop": ("die",), "memory": ("oom", "die")}


def test_every_kind_of_fault_is_injected_survived_and_measured(
    kit: Kit, client: docker.DockerClient
) -> None:
    """Among them the leader, whose sign of life the host misses."""
    found = drilled(kit, client, "smoke", FAULTS, LONGER, *SETS)
    for fault in found.faults:
        if fault["kind"] in LOST:
            assert fault["detected_by"] in LOST[fault["kind"]]
            assert fault["detected_after_s"] < 5
        if fault["kind"] in LOST or (fault["for"] is None and fault["kind"] in ("freeze", "cut")):
            assert fault["restarts"] >= 1, fault
        if fault["for"] is not None:
            assert fault["restarts"] == 0, fault
    assert "epoch 24/24" in found.said, "the chief's log was lost"
    outcome = kit.outcome()
    assert outcome["blame"] is None
    assert outcome["metrics"]["validation_accuracy"] > 0.8
    silent = [event["of"] for event in events(kit, "chief-0", "silent")]
    assert silent[:2] == ["worker-0", "ps-0"]
    assert min(restarts(kit)[task] for task in ("worker-0", "ps-0", "chief-0")) >= 2
    notes = [note for note in outcome["notes"] if " has been silent for " in note]
    for note, task in zip(notes, ("worker-0", "ps-0", "chief-0"), strict=True):
        assert note.startswith(f"{task} has been silent for ")
        assert note.endswith("; it was started again")
