"""The ways of training and the scenarios that are compared, as overrides of a manifest. Pure.

All variants train on the same number of images and compute two gradients at a time, and the CPU
limits of their training tasks sum up to the same budget. The evaluator has a budget of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cluster_kit.roles import CHIEF, EVALUATOR, PS, WORKER

GRADIENTS = 2
"""Workers or clones that compute gradients at the same time."""
BATCH = 32
TRAINING_PART = 0.8
"""Fraction of the host's CPUs for the training tasks; the rest is for the evaluator."""
STRAGGLER_CPUS = 0.2
MACHINE_CPUS, MACHINE_GB = 2.0, 8.0
MACHINE_MBIT = 100
MACHINE_BANDWIDTH = f"{MACHINE_MBIT}mbit"
LEAST_GB = 1.5
"""The least memory of a task in GB: TensorFlow's client with a small model needs it."""


@dataclass(frozen=True)
class Variant:
    """One way of training: tasks, each role's part of the CPU budget, and arguments."""

    key: str
    title: str
    args: tuple[str, ...]
    parts: Mapping[str, float]
    """By role: the fraction of the budget that each of its tasks gets; one chief, one ps."""
    workers: int
    synchronous: bool
    style: str = "auto"

    def count(self, role: str) -> int:
        """The number of tasks of a role that the variant has."""
        return self.workers if role == WORKER.name else 1

    @property
    def batches_per_update(self) -> int:
        """The number of workers' batches that go into one update of the model."""
        return GRADIENTS if self.synchronous else 1


ALL = {CHIEF.name: 0.3, PS.name: 0.15, WORKER.name: 0.275}
GRAPH = {PS.name: 0.2, WORKER.name: 0.4}
ALONE = {WORKER.name: 1.0}
HALVES = {WORKER.name: 0.5}
COORDINATED = ("--strategy", "parameter-server")
BETWEEN_GRAPH = ("--strategy", "graph")

VARIANTS = (
    Variant("ps-async", "ps async, coordinator", (*COORDINATED, "--update", "async"), ALL, 2,
            False),
    Variant("ps-sync", "ps sync, coordinator", (*COORDINATED, "--update", "sync"), ALL, 2, True),
    Variant("graph-async", "ps async, graph mode", (*BETWEEN_GRAPH, "--update", "async"), GRAPH, 2,
            False, "all-tasks"),
    Variant("graph-sync", "ps sync, graph mode", (*BETWEEN_GRAPH, "--update", "sync"), GRAPH, 2,
            True, "all-tasks"),
    Variant("all-reduce", "all-reduce", ("--strategy", "all-reduce"), HALVES, 2, True),
    Variant("clones", "2 clones in one task", (*BETWEEN_GRAPH, "--num-clones", str(GRADIENTS),
            "--clone-on-cpu", "--batch-size", str(BATCH * GRADIENTS)), ALONE, 1, True),
)  # fmt: skip


@dataclass(frozen=True)
class Scenario:
    """The circumstances of a comparison."""

    key: str
    title: str


EVEN = Scenario("even", "equal workers")
STRAGGLER = Scenario("straggler", f"worker-1 at {STRAGGLER_CPUS:g} CPU")
SYSTEM_A = Scenario("system-a", f"system A's machine, {MACHINE_BANDWIDTH}/s")
SCENARIOS = (EVEN, STRAGGLER, SYSTEM_A)


@dataclass(frozen=True)
class Length:
    """How long each run is: updates of one worker's batch per epoch, and epochs."""

    steps: int
    epochs: int

    def images(self) -> int:
        """The number of images that the model is trained on in the whole run."""
        return self.steps * self.epochs * BATCH


@dataclass(frozen=True)
class Run:
    """One run of the comparison; `skipped` is why it is not run, "" if it is."""

    variant: Variant
    scenario: Scenario
    overrides: Mapping[str, Any]
    cpus: float
    """Sum of the training tasks' limits, in cores."""
    skipped: str = ""

    @property
    def key(self) -> str:
        return f"{self.scenario.key}/{self.variant.key}"


def plan_runs(
    variants: tuple[Variant, ...], scenarios: tuple[Scenario, ...], length: Length, cpus: float
) -> list[Run]:
    """All runs, scenario by scenario.

    Args:
        cpus: the host's CPUs in cores.
    """
    return [_run(variant, scenario, length, cpus) for scenario in scenarios for variant in variants]


def _run(variant: Variant, scenario: Scenario, length: Length, cpus: float) -> Run:
    limits: dict[str, dict[str, Any]] = {
        role: {"cpus": round(part * cpus * TRAINING_PART, 3)}
        for role, part in variant.parts.items()
    }
    total = sum(limits[role]["cpus"] * variant.count(role) for role in limits)
    tables: dict[str, Any] = {"role": limits}
    skipped = ""
    if scenario is STRAGGLER and variant.workers < 2:
        skipped = "there is no second worker"
    elif scenario is STRAGGLER:
        total += STRAGGLER_CPUS - limits[WORKER.name]["cpus"]
        tables["task"] = {"worker-1": {"cpus": STRAGGLER_CPUS}}
    if scenario is SYSTEM_A:
        for limit in limits.values():
            limit["cpus"] = min(limit["cpus"], MACHINE_CPUS)
            fraction = limit["cpus"] / MACHINE_CPUS
            limit["memory"] = f"{max(LEAST_GB, MACHINE_GB * fraction):.2f}g"
            limit["bandwidth"] = MACHINE_BANDWIDTH
        total = sum(limits[role]["cpus"] * variant.count(role) for role in limits)
    limits[EVALUATOR.name] = {"cpus": round(cpus * (1 - TRAINING_PART), 3)}
    steps = max(1, length.steps // variant.batches_per_update)
    overrides = {
        "name": f"compare-{variant.key}",
        CHIEF.name: int(CHIEF.name in variant.parts),
        WORKER.name: variant.workers,
        PS.name: int(PS.name in variant.parts),
        "style": variant.style,
        "extra_args": [
            *("--epochs", str(length.epochs), "--steps-per-epoch", str(steps)),
            *variant.args,
        ],
        **tables,
    }
    return Run(variant, scenario, overrides, round(total, 3), skipped)
