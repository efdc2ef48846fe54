"""The runs of a comparison: equal budgets, equal data, and valid manifests."""

from __future__ import annotations

import pytest

from cluster_kit.compare.measure import (
    BASE,
    EVEN,
    SCENARIOS,
    STRAGGLER,
    SYSTEM_A,
    VARIANTS,
    Length,
    Run,
    plan_runs,
)
from cluster_kit.platforms.platform import load, plan
from tests.make import OWN, host, inputs

LENGTH = Length(steps=40, epochs=6)


def runs(cpus: float = 2.0) -> list[Run]:
    return plan_runs(VARIANTS, SCENARIOS, LENGTH, cpus)


def option(run: Run, name: str) -> str:
    """Returns the value of an argument; the last one counts."""
    arguments = [*load(BASE).manifest.args, *run.overrides["extra_args"]]
    return arguments[len(arguments) - arguments[::-1].index(name)]


@pytest.mark.parametrize("cpus", [1.0, 2.0, 16.0])
def test_all_ways_have_the_same_cpu_budget_within_the_host(cpus: float) -> None:
    even = [run for run in runs(cpus) if run.scenario == EVEN]
    assert {round(run.cpus, 6) for run in even} == {round(0.8 * cpus, 6)}
    for run in even:
        limits, count = run.overrides["role"], run.variant.count
        evaluator = limits["evaluator"]["cpus"]
        total = sum(limit["cpus"] * count(role) for role, limit in limits.items())
        assert total == pytest.approx(cpus), run.key
        assert evaluator == pytest.approx(0.2 * cpus)


def test_all_ways_see_the_same_number_of_images() -> None:
    for run in runs():
        steps = int(option(run, "--steps-per-epoch")) * int(option(run, "--epochs"))
        per_worker = int(option(run, "--batch-size"))
        together = run.variant.workers if run.variant.synchronous else 1
        assert steps * per_worker * together == LENGTH.images(), run.key


def test_only_the_straggler_is_slow() -> None:
    for slow in (run for run in runs() if run.scenario == STRAGGLER):
        even = next(r for r in runs() if (r.variant, r.scenario) == (slow.variant, EVEN))
        assert slow.overrides["role"] == even.overrides["role"]
        if slow.variant.workers == 1:
            assert slow.skipped == "there is no second worker"
            continue
        assert slow.overrides["task"] == {"worker-1": {"cpus": 0.2}}
        assert slow.cpus == pytest.approx(
            even.cpus - slow.overrides["role"]["worker"]["cpus"] + 0.2
        )


def test_small_machines_have_one_machine_per_task() -> None:
    for run in (run for run in runs(64.0) if run.scenario == SYSTEM_A):
        for role, limit in run.overrides["role"].items():
            if role != "evaluator":
                assert (limit["cpus"], limit["memory"]) == (2.0, "8.00g")
                assert limit["bandwidth"] == "100mbit"
    small = [r for r in runs(2.0) if r.scenario == SYSTEM_A]
    assert all(limit["cpus"] <= 2.0 for r in small for limit in r.overrides["role"].values())


@pytest.mark.parametrize("run", runs(), ids=lambda run: run.key)
def test_every_run_is_a_valid_manifest(run: Run) -> None:
    loaded = load(BASE, run.overrides)
    assert not loaded.problems
    cluster = plan(loaded, inputs(loaded.manifest), host(), OWN)
    assert cluster.of("evaluator")
    trains = "--strategy graph" in " ".join(run.overrides["extra_args"])
    if trains and run.variant.workers > 1:
        assert not any(task.serves for task in cluster.of("worker"))
