"""The matrix: its cells, how they are judged, and runs with an engine in memory."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from cluster_kit.drill import matrix as matrix
from cluster_kit.drill.fault_plan import Planned
from cluster_kit.drill.matrix import (
    BREAKS,
    SYSTEMS,
    Break,
    Cell,
    Judged,
    System,
    cells_of,
    groups,
    judged,
    roles_of,
    run_all,
    scenario,
    task_of,
)
from cluster_kit.drill.measure import Result
from cluster_kit.drill.result import Drill
from cluster_kit.drill.scenario_file import At
from cluster_kit.platforms.platform import load
from cluster_kit.run.outcome import Outcome
from cluster_kit.workspace import Workspace
from tests.fakes.acting import Life, ends, says
from tests.fakes.hosts import fake_host
from tests.fakes.stage import Stage
from tests.make import ROOT, cluster, manifest

DEMO = System("demo", "--epochs", least=2, for_each=3)


def cell(role: str = "worker", kind: str = "crash", lasts: float | None = None) -> Cell:
    return Cell(DEMO, role, Break(kind, lasts))


@pytest.mark.parametrize(
    ("keys", "roles", "tasks"),
    [
        ({"chief": 1, "worker": 2, "ps": 2, "evaluator": 1},
         ["leader", "worker", "ps", "evaluator"],
         ["chief-0", "worker-1", "ps-1", "evaluator-0"]),
        ({"chief": 0, "worker": 2, "ps": 0}, ["leader", "worker"], ["worker-0", "worker-1"]),
        ({"chief": 0, "worker": 1, "ps": 1}, ["leader", "ps"], ["worker-0", "ps-0"]),
    ],
)  # fmt: skip
def test_each_role_is_represented_by_a_different_task(
    keys: dict[str, Any], roles: list[str], tasks: list[str]
) -> None:
    keys = {"evaluator": 0, "style": "all-tasks"} | keys
    assert roles_of(manifest(**keys)) == roles
    planned = cluster(**keys)
    assert [task_of(role, planned) for role in roles] == tasks


def test_the_shipped_systems_have_every_cell() -> None:
    cells = cells_of(SYSTEMS, Workspace(ROOT))
    assert len({cell.key for cell in cells}) == len(cells) == 18 * len(BREAKS)


def test_every_shipped_system_accepts_its_overrides() -> None:
    for system in SYSTEMS:
        path = ROOT / "compose" / f"{system.manifest}.toml"
        assert not load(path, system.overrides("ps", 9)).problems


def test_a_run_is_longer_if_training_continues_without_the_task() -> None:
    system = System("demo", "--steps", 10, 2, 5, ("worker",))
    lengths = [system.overrides(role, 3)["extra_args"] for role in ("ps", "worker")]
    assert lengths == [["--steps", "16"], ["--steps", "25"]]
    assert System("mine/own.toml").overrides("ps", 3)["extra_args"] == []


def test_a_fault_that_ends_the_job_has_a_separate_run() -> None:
    cells = [cell("leader", "crash"), cell("leader", "stop"), cell("leader", "cut", 1), cell("ps")]
    assert groups(cells) == [[cells[0], cells[2]], [cells[1]], [cells[3]]]


def test_each_fault_comes_after_the_one_before_it_is_over() -> None:
    written = scenario([cell("ps", "crash"), cell("ps", "freeze", 60)], cluster(ps=1)).scenario
    assert [(f.kind, f.task, f.at.calm, f.lasts) for f in written.fault] == [
        ("crash", "ps-0", 3, None), ("freeze", "ps-0", 3, 60),
    ]  # fmt: skip


def result(cell: Cell, injected_at: float = 10.0, **different: Any) -> Result:
    fault = Planned(1, cell.fault.kind, "worker-1", At(calm=3), cell.fault.lasts)
    usual = {"detected_after": 1.0, "detected_by": "die", "going_on_after": 3.0, "steps_lost": 0,
             "steps_at_risk": 10}  # fmt: skip
    return Result(fault, injected_at, 50, **usual | different)


def drilled(*results: Result, **different: Any) -> Drill:
    usual: dict[str, Any] = {
        "cluster": "demo", "success": True, "exit_code": 0, "reason": "finished", "blame": None,
        "message": "", "last_words": "", "notes": [], "tasks": [], "timings_s": {},
        "metrics": {}, "cure": "", "run": "/r",
    }  # fmt: skip
    return Drill("matrix", 0, results, (), Outcome(**usual | different))


SILENT = {"success": False, "exit_code": 6, "reason": "silent", "blame": "ps-0", "message": "no"}
STOPPED = {"success": False, "exit_code": 5, "reason": "stopped"}


@pytest.mark.parametrize(
    ("cell", "figures", "outcome", "verdict", "misses"),
    [
        (cell(), {}, {}, "went on", []),
        (cell(), {"detected_after": 12.1, "going_on_after": 18.2}, {}, "went on",
         ["detected after 12.1 s", "going on 6.1 s after its detection"]),
        (cell(), {"detected_after": None}, {}, "went on", ["never detected"]),
        (cell(kind="freeze", lasts=60), {"detected_after": None}, {}, "went on",
         ["never detected"]),
        (cell(kind="freeze", lasts=10), {"detected_after": None, "going_on_after": 16}, {},
         "went on", []),
        (cell(kind="cut", lasts=1), {"detected_after": None, "going_on_after": 7.2}, {}, "went on",
         ["going on 6.2 s after its end"]),
        (cell(kind="slow", lasts=10), {"detected_after": None, "going_on_after": 12}, {}, "went on",
         []),
        (cell(), {"steps_lost": 11}, {}, "went on",
         ["11 steps lost, 10 since the last checkpoint"]),
        (cell(), {"steps_lost": 1, "steps_at_risk": 0}, {}, "went on",
         ["1 step lost, 0 since the last checkpoint"]),
        (cell(), {"going_on_after": None}, {}, "wrong", ["the training never continued"]),
        (cell(), {}, SILENT, "wrong", ["the run ended (silent, blame ps-0): no"]),
        (cell("leader", "stop"), {"going_on_after": None}, STOPPED, "ended", []),
        (cell("leader", "stop"), {}, {}, "wrong",
         ["the job should end as stopped; the run succeeded"]),
        (cell("leader", "stop"), {}, SILENT, "wrong",
         ["the job should end as stopped; the run ended (silent, blame ps-0): no"]),
    ],
)  # fmt: skip
def test_a_cell_is_judged_by_its_values(
    cell: Cell, figures: dict[str, Any], outcome: dict[str, Any], verdict: str, misses: list[str]
) -> None:
    (one,) = judged([cell], drilled(result(cell, **figures), **outcome), [])
    assert (one.verdict, list(one.misses)) == (verdict, misses)


def test_a_failed_run_counts_against_its_last_fault_and_leftovers_are_reported() -> None:
    cells = [cell(), cell(kind="freeze", lasts=10), cell(kind="cut", lasts=1)]
    missed = replace(result(cells[2]), why_not="the job ended before", injected_at=None)
    done = drilled(result(cells[0]), result(cells[1], 40.0), missed, **SILENT)
    one, two = judged(cells, done, ["demo-net"])
    assert (one.verdict, one.misses) == ("went on", ("left behind: demo-net",))
    assert two.verdict == "wrong" and two.misses[1].startswith("the run ended (silent")


def test_a_fault_just_before_the_jobs_end_proves_nothing() -> None:
    cells = [cell(), cell(kind="memory")]
    late = replace(result(cells[1], 40.0), detected_after=None, at_end=True)
    assert [one.cell for one in judged(cells, drilled(result(cells[0]), late), [])] == cells[:1]


@pytest.mark.parametrize(
    ("fault", "figures", "counts"),
    [
        (cell(kind="freeze", lasts=60), {"detected_after": None, "before_end": 6.1}, False),
        (cell(kind="freeze", lasts=60), {"detected_after": None, "before_end": 13.0}, True),
        (cell(kind="freeze", lasts=60), {"detected_after": 5.8, "before_end": 6.1}, True),
        (cell(kind="cut", lasts=1), {"detected_after": None, "before_end": 6.1}, True),
        (cell(kind="freeze", lasts=60), {"detected_after": None, "before_end": None}, True),
    ],
)
def test_a_fault_counts_only_if_there_was_time_to_detect_it(
    fault: Cell, figures: dict[str, Any], counts: bool
) -> None:
    done = drilled(result(cell()), replace(result(fault, 40.0), **figures))
    assert (fault in [one.cell for one in judged([cell(), fault], done, [])]) == counts


def steps(*moments: float) -> tuple[Any, ...]:
    return tuple(says(moment, "step", step=round(10 * moment)) for moment in moments)


def play(stage: Stage, cells: list[Cell], seconds: float) -> list[Judged]:
    """Play the whole matrix, with a leader that reports steps for this many seconds in each run."""
    trains = steps(*(1 + i / 2 for i in range(round(2 * seconds))))
    life = Life((says(0.1, "start", attempt=1), says(0.4, "ready"), *trains,
                 ends(seconds + 2, 0, "finished")))  # fmt: skip
    stage.engine.acting = {"chief-0": [life]}
    return list(run_all(stage.host, cells, stage.workspace, lambda: stage.view))


def test_the_faults_of_a_role_follow_each_other_in_one_run(stage: Stage) -> None:
    cells = [cell(kind="crash"), cell(kind="cut", lasts=1), cell(kind="freeze", lasts=2)]
    found = play(stage, cells, 30)
    assert [(one.cell, one.verdict) for one in found] == [(cell, "went on") for cell in cells]
    assert len({one.drill.outcome.run for one in found if one.drill}) == 1
    moments = [one.result.injected_at for one in found if one.result]
    assert all(later - one > 3 for one, later in pairwise(moments))


def test_faults_that_a_run_did_not_reach_are_run_again(stage: Stage) -> None:
    cells = [cell(kind="crash"), cell(kind="cut", lasts=1), cell(kind="freeze", lasts=2)]
    found = play(stage, cells, 6)
    assert [one.cell for one in found] == cells
    assert len({one.drill.outcome.run for one in found if one.drill}) > 1


def test_runs_that_succeed_before_their_first_fault_become_longer_then_it_is_reported(
    stage: Stage,
) -> None:
    (one,) = play(stage, [cell()], 2)
    assert one.verdict == "not reached"
    assert one.misses == ("the job ended before; the run succeeded",)
    assert one.facts()["detected_after_s"] is None
    runs = sorted(stage.workspace.runs("demo-matrix").glob("2*/run.json"))
    lengths = [set(re.findall(r"--epochs\W+(\d+)", file.read_text())) for file in runs]
    assert lengths == [{"5"}, {"10"}, {"20"}, {"40"}]


def test_a_run_that_fails_before_its_first_fault_is_not_repeated(stage: Stage) -> None:
    stage.engine.acting = {"chief-0": [Life((says(0.1, "start", attempt=1), ends(1, 1, "failed")))]}
    (one,) = run_all(stage.host, [cell()], stage.workspace, lambda: stage.view)
    assert one.verdict == "not reached"
    assert len([*stage.workspace.runs("demo-matrix").glob("2*/run.json")]) == 1


def test_each_of_its_runs_can_be_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of the previous run has ignored Ctrl-C."""
    calls: list[str] = []
    interrupts: Any = SimpleNamespace(interrupt_once=lambda: calls.append("armed"))
    host = replace(fake_host(), interrupts=interrupts)
    monkeypatch.setattr(matrix, "drill", lambda *_: calls.append("drill"))
    view: Any = SimpleNamespace(close=lambda: None)
    nowhere: Any = SimpleNamespace()
    for one in (Cell(SYSTEMS[0], "leader", BREAKS[0]), Cell(SYSTEMS[1], "worker", BREAKS[1])):
        matrix._run(host, [one], nowhere, lambda: view)
    assert calls == ["armed", "drill"] * 2
