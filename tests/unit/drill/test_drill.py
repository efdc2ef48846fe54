"""Whole drills with an engine in memory: what is injected and when, measured, reported and
judged."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from cluster_kit.drill import fault_plan, scenario_file
from cluster_kit.drill.fault_plan import plan
from cluster_kit.drill.injector import Director
from cluster_kit.errors import EngineError, Interrupted, ManifestError
from cluster_kit.observe.state import RunState
from cluster_kit.platforms.platform import load as load_manifest
from cluster_kit.platforms.platform import plan as plan_cluster
from tests.fakes.acting import LEADS, Life, says
from tests.fakes.clock import Clock
from tests.fakes.stage import Stage
from tests.make import OWN, ROOT, cluster, host, inputs
from tests.unit.drill.played import STEPS, fault, played


def test_a_crash_is_injected_at_its_step_and_measured(stage: Stage) -> None:
    done = played(stage, fault("crash", "worker-1", "step = 30"))
    assert done.passed, done.misses
    (result,) = done.results
    assert result.step == 30
    assert result.detected_by == "die" and result.detected_after is not None
    assert (result.going_on_after, result.steps_lost, result.restarts) == (
        pytest.approx(0.9, abs=0.3), 0, 1,
    )  # fmt: skip
    assert "drill: fault 1 (crash of worker-1 at step 30)" in stage.view.phases
    saved = json.loads((stage.directory.path / "drill.json").read_text())
    assert saved == json.loads(json.dumps(done.facts()))
    assert (saved["passed"], saved["seed"], saved["faults"][0]["at"]) == (True, 5, {"step": 30})
    assert stage.is_clean()


def test_the_report_of_the_run_has_the_faults(stage: Stage) -> None:
    played(stage, fault("freeze", "worker-1", "step = 30", "for = 2"))
    report = json.loads((stage.directory.path / "report.json").read_text())
    (one,) = report["faults"]
    assert (one["kind"], one["task"]) == ("freeze", "worker-1")
    assert one["over"] - one["at"] == pytest.approx(2.0)
    (worker,) = (task for task in report["tasks"] if task["name"] == "worker-1")
    assert [span["state"] for span in worker["over"]].count("broken") == 1
    assert "broken by the drill" in (stage.directory.path / "report.html").read_text()


def test_a_crashed_leader_restarts_and_repeated_steps_count_as_lost(stage: Stage) -> None:
    text = fault("crash", "chief-0", "step = 30") + "[expect]\nloses_at_most = 19"
    done = played(stage, text, {"chief-0": [Life(STEPS), LEADS]})
    (result,) = done.results
    assert (result.steps_lost, result.restarts) == (29, 1)
    assert done.misses == (f"{result.fault}: at most 19 steps should be lost, not 29",)


def test_all_kinds_of_moments(stage: Stage) -> None:
    epochs = (says(2.5, "epoch", epoch=1, step=15), says(4.5, "epoch", epoch=2, step=35))
    text = (
        fault("freeze", "worker-0", "seconds = 1.5")
        + fault("freeze", "worker-1", "epoch = 2")
        + fault("freeze", "ps-0", 'after = "evaluation"', "for = 3")
    )
    done = played(stage, text, {"chief-0": [Life((*STEPS, *epochs))]})
    assert [r.injected_at for r in done.results] == [
        pytest.approx(1.5, abs=0.3), pytest.approx(4.1, abs=0.3), pytest.approx(2.0, abs=0.3),
    ]  # fmt: skip
    assert stage.engine.executed == [
        ("worker-0", "kill -STOP -1"),
        ("ps-0", "kill -STOP -1; sleep 3; kill -CONT -1"),
        ("worker-1", "kill -STOP -1"),
    ]


def test_a_fault_after_the_first_checkpoint(stage: Stage) -> None:
    def export() -> None:
        (stage.directory.output / "best" / "variables").mkdir(parents=True)
        (stage.directory.output / "best" / "variables" / "variables.index").touch()

    def save() -> None:
        (stage.directory.output / "checkpoints").mkdir()
        (stage.directory.output / "checkpoints" / "ckpt-1.index").touch()

    stage.clock.at(1.5, export)
    stage.clock.at(3.0, save)
    done = played(stage, fault("crash", "ps-0", 'after = "checkpoint"'))
    assert done.results[0].injected_at == pytest.approx(2.6, abs=0.4)


def test_a_cluster_that_does_not_exist_now_is_looked_for_again(stage: Stage) -> None:
    written = scenario_file.parse(
        tomllib.loads(fault("crash", "ps-0", 'after = "checkpoint"')), "mine.toml"
    )
    demo = cluster(ps=1)
    director = Director(Clock(), lambda made: plan(written.scenario, made, 1), lambda _said: None)
    director.planned(demo)
    director.observe(stage.engine, demo, RunState.of(demo))
    assert director.done == []


def test_a_fault_whose_moment_never_came_is_reported(stage: Stage) -> None:
    done = played(stage, fault("crash", "ps-0", "step = 500"))
    assert done.misses == (
        "fault 1 (crash of ps-0 at step 500) was not injected: the job ended before",
    )


def test_a_fault_waits_for_a_task_that_does_not_run_and_an_engine_that_refuses(
    stage: Stage,
) -> None:
    refusals = iter([EngineError("refused: it is restarting")])

    def refuse(name: str) -> None:
        if name == "execute" and (error := next(refusals, None)):
            raise error

    stage.engine.on_call = refuse
    text = fault("crash", "worker-1", "step = 20") + fault("crash", "worker-1", "step = 20")
    done = played(stage, text)
    assert done.passed
    assert [result.restarts for result in done.results] == [1, 1]


def test_an_invalid_scenario_starts_nothing(stage: Stage) -> None:
    with pytest.raises(ManifestError, match=r"mine\.toml: 1 problem\n.*worker-8"):
        played(stage, fault("crash", "worker-8", "step = 5"))
    assert not stage.ran and stage.is_clean()


def test_an_interrupted_drill_is_not_judged(stage: Stage) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    stage.clock.at(3.0, interrupt)
    with pytest.raises(Interrupted, match="the drill was interrupted"):
        played(stage, fault("crash", "ps-0", "step = 50"))
    assert stage.is_clean()


def test_shipped_scenarios_fit_their_clusters() -> None:
    shipped = sorted((ROOT / "compose" / "drills").glob("*.toml"))
    assert shipped
    for path in shipped:
        manifest = load_manifest(Path(ROOT, "compose", path.name))
        planned = plan_cluster(manifest, inputs(manifest.manifest), host(), OWN)
        fault_plan.refuse(scenario_file.load(path), planned)
