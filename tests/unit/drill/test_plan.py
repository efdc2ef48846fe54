"""Which fault hits which task: by the scenario, and by the seed."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

from cluster_kit.drill import fault_plan, scenario_file
from cluster_kit.drill.fault_plan import Planned, length_of, plan, random_scenario, saved_at
from cluster_kit.drill.injector import TELL, script
from cluster_kit.drill.scenario_file import KINDS, At
from tests.make import cluster

SCENARIO = """
[[fault]]
kind = "crash"
role = "ps"
at = { step = 5 }
[[fault]]
kind = "freeze"
task = "random"
at = { epoch = 1 }
for = "10s"
[[fault]]
kind = "stop"
task = "worker-1"
at = { seconds = 2 }
grace = 3
"""
DEMO = cluster(args=["--epochs", "3", "--steps-per-epoch", "20"])


def planned(seed: int) -> tuple[Planned, ...]:
    return plan(scenario_file.parse(tomllib.loads(SCENARIO), "mine.toml").scenario, DEMO, seed)


def test_a_role_means_all_of_its_tasks() -> None:
    faults = planned(1)
    assert [(f.number, f.kind) for f in faults] == [
        (1, "crash"), (1, "crash"), (2, "freeze"), (3, "stop"),
    ]  # fmt: skip
    assert [f.task for f in faults[:2]] == ["ps-0", "ps-1"]
    assert (faults[2].lasts, faults[3].grace, faults[0].grace) == (10.0, 3.0, 10.0)
    assert str(faults[2]).startswith("fault 2 (freeze of ")
    assert str(faults[2]).endswith(" for 10 s at epoch 1)")


def test_the_seed_decides_all_random_choices() -> None:
    assert planned(7) == planned(7)
    assert {planned(seed)[2].task for seed in range(60)} == {task.name for task in DEMO.tasks}


def test_random_drills_are_possible_repeatable_and_of_every_kind() -> None:
    kinds = set()
    for seed in range(40):
        written = random_scenario(DEMO, seed, 3)
        assert written == random_scenario(DEMO, seed, 3)
        fault_plan.refuse(written, DEMO)
        faults = plan(written.scenario, DEMO, seed)
        assert [fault.number for fault in faults] == [1, 2, 3]
        assert not any(f.kind == "stop" and f.task == "chief-0" for f in faults)
        kinds |= {fault.kind for fault in faults}
    assert kinds == {kind.name for kind in KINDS.values() if kind.drawn and not kind.beside}
    assert random_scenario(DEMO, 1, 3) != random_scenario(DEMO, 2, 3)


def test_a_task_is_not_cut_off_from_itself() -> None:
    text = """
    [[fault]]
    kind = "cut"
    task = "random"
    from = ["ps-0", "chief-0"]
    at = { step = 5 }
    """
    scenario = scenario_file.parse(tomllib.loads(text), "mine.toml").scenario
    faults = [plan(scenario, DEMO, seed)[0] for seed in range(40)]
    assert {f.task for f in faults} == {t.name for t in DEMO.tasks} - {"ps-0", "chief-0"}
    assert f"(cut of {faults[0].task} from ps-0, chief-0 at step 5)" in str(faults[0])


def test_if_the_length_is_unknown_random_faults_come_at_times() -> None:
    own = cluster(program="train.py")
    (fault,) = random_scenario(own, 1, 1).scenario.fault
    assert fault.at.seconds is not None


def test_the_length_of_programs_from_their_arguments() -> None:
    assert (length_of(DEMO).steps, length_of(DEMO).epochs) == (60, 3)
    line = cluster(program="linear-regression", chief=0, style="all-tasks", args=["--steps=30"])
    assert length_of(line).steps == 30
    assert length_of(cluster(args=["--epochs", "3"])).epochs == 3
    assert length_of(cluster(program="train.py", args=["--epochs", "3"])).epochs is None


def test_faults_that_end_by_themselves_are_timed_inside_the_container() -> None:
    def said(kind: str, lasts: float | None = None) -> str:
        return script(Planned(1, kind, "worker-0", At(step=1), lasts, 7.5))

    assert said("crash") == "kill -9 -1"
    assert said("stop") == f"{TELL}; sleep 7.5; kill -9 -1"
    assert said("freeze", 2.5) == "kill -STOP -1; sleep 2.5; kill -CONT -1"
    assert said("freeze") == "kill -STOP -1"


def test_a_copy_of_a_checkpoint_is_no_newer_one(tmp_path: Path) -> None:
    """An evaluator copies the best one after it has scored it."""
    for name, moment in (
        ("checkpoints/ckpt-1.index", 100),
        ("checkpoints/ckpt-2.index", 200),
        ("best/ckpt-1.index", 300),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (moment, moment))
    assert saved_at(tmp_path, 90.0) == 200.0
    assert saved_at(tmp_path, 90.0, "best") == 300.0
    assert saved_at(tmp_path, 400.0) is None
