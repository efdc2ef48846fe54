"""Faults in real containers, one after the other in one training.

Each has its effect, is detected, survived and measured.
"""

from __future__ import annotations

import json

import docker
import pytest

from tests.e2e.drilled import Drilled, Fault, drilled
from tests.e2e.evidence import events, restarts
from tests.kit import Kit, mine

SETS = ("--set", "deadline.silent=4", "--set", "deadline.evaluator_grace=180",
        "--set", "retries=10")  # fmt: skip
"""The evaluator has the lowest priority: next to other tests' clusters it is slow."""
EARLY = "for = 1\nat = { step = 5 }\n"
SOME = (
    ("loss", "ps-0", f"{EARLY}percent = 1"),
    ("freeze", "worker-0", ""),
    ("cut", "ps-0", ""),
)
"""Crashes, also of a leader: test_linear_regression.py."""
EVERY_KIND = (
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
SILENT = ("freeze", "cut")


@pytest.mark.parametrize(
    ("faults", "epochs", "sets"),
    [
        pytest.param(SOME, 10, (*SETS, "--set", "evaluator=0"), id="some kinds"),
        pytest.param(EVERY_KIND, 40, SETS, id="every kind", marks=pytest.mark.more),
    ],
)
def test_faults_are_injected_survived_and_measured(
    kit: Kit,
    client: docker.DockerClient,
    faults: tuple[Fault, ...],
    epochs: int,
    sets: tuple[str, ...],
) -> None:
    """In `every kind` are a crash of the leader, and a frozen leader, which only the host can
    detect."""
    longer = f"--args=--epochs {epochs} --steps-per-epoch 40"
    found = drilled(kit, client, "smoke", faults, longer, *sets)
    each_fault_was_detected(found)
    assert f"epoch {epochs}/{epochs}" in found.said, "the chief's log was lost"
    outcome = kit.outcome()
    assert outcome["blame"] is None
    assert outcome["metrics"]["test_accuracy"] > 0.8
    again = [f for f in found.faults if f["kind"] in LOST or is_silent(f)]
    for task in ("worker-0", "ps-0", "chief-0"):
        assert restarts(kit)[task] >= sum(fault["task"] == task for fault in again)
    silent = [fault["task"] for fault in again if is_silent(fault)]
    # On a busy machine a restarted task can be silent once more.
    missed = list(dict.fromkeys(event["of"] for event in events(kit, "chief-0", "silent")))
    assert missed[:2] == ["worker-0", "ps-0"] == silent[:2]
    notes = [note for note in outcome["notes"] if " has been silent for " in note]
    assert {note.partition(" has been silent for ")[0] for note in notes} == set(silent)
    assert all(note.endswith("; it was started again") for note in notes)


def each_fault_was_detected(found: Drilled) -> None:
    for fault in found.faults:
        if fault["kind"] in LOST:
            assert fault["detected_by"] in LOST[fault["kind"]]
            assert fault["detected_after_s"] < 15
        if fault["kind"] in LOST or is_silent(fault):
            assert fault["restarts"] >= 1, fault
        if fault["for"] is not None:
            assert fault["restarts"] == 0, fault


def is_silent(fault: dict[str, object]) -> bool:
    """Returns whether a fault silences its task until the task is restarted."""
    return fault["for"] is None and fault["kind"] in SILENT


@pytest.mark.more
def test_a_trace_is_replayed_and_its_goodput_is_measured(
    kit: Kit, client: docker.DockerClient
) -> None:
    trace = kit.root / "trace.csv"
    trace.write_text("machine,left,back\nspot-a,100,300\nspot-b,400,600\n")
    done = kit.run(
        *("drill", "linear-regression", "--name", kit.name, "--json", "--workers", "3"),
        *("--args=--steps 12000", "--trace", str(trace), "--speedup", "50"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    facts = json.loads(done.stdout)
    assert facts["passed"] and facts["success"]
    assert [(one["kind"], one["task"]) for one in facts["faults"]] == [
        ("away", "worker-1"),
        ("away", "worker-2"),
    ]
    goodput = facts["goodput"]
    assert goodput["unknown"] == ""
    assert 0 < goodput["useful_steps"] <= 12_000
    assert 0 < goodput["measured"] <= 1.2, "a busy machine can be faster during an absence"
    assert 0 < goodput["predicted"] <= 1
    away = [one["back_s"] - one["left_s"] for one in goodput["absences"]]
    assert all(3 < seconds < 60 for seconds in away), "200 s at a speed of 50, and a start"
    assert mine(client, kit.name) == ([], [])
