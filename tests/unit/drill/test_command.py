"""The command `cluster-kit drill`, with an engine in memory."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from cluster_kit import __main__
from cluster_kit.drill import result
from cluster_kit.util import process, stdio
from tests.fakes import acting
from tests.fakes.acting import ends, says
from tests.fakes.stage import Stage
from tests.schemas import check

DRAW = result.draw
CRASH = '[[fault]]\nkind = "crash"\ntask = "worker-1"\nat = {{ {at} }}\n'


@pytest.fixture
def drill(stage: Stage, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Any:
    """Returns a function that calls `cluster-kit drill` with these words; it returns (exit code,
    stdout, stderr)."""
    (stage.workspace.manifests / "drills").mkdir()
    monkeypatch.setattr(result, "draw", lambda *_: True)
    monkeypatch.chdir(stage.workspace.root)
    monkeypatch.setattr(process, "interrupt_once", lambda: None)
    monkeypatch.setattr(stdio, "outlive_readers", lambda: None)

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["cluster-kit", "drill", *words])
        with pytest.raises(SystemExit) as ended:
            __main__.main()
        out, err = capfd.readouterr()
        return int(str(ended.value.code or 0)), out, err

    return call


def write(stage: Stage, name: str, text: str) -> Path:
    path = stage.workspace.manifests / "drills" / f"{name}.toml"
    path.write_text(text)
    return path


def test_the_scenario_of_the_manifests_name_is_the_default(stage: Stage, drill: Any) -> None:
    write(stage, "demo", CRASH.format(at="step = 1"))
    code, out, err = drill("demo")
    assert code == 0, err
    assert "1 crash worker-1  at step 1" in out
    assert "passed: all is as expected" in out
    assert "drill: fault 1 (crash of worker-1 at step 1)" in err


@pytest.mark.xdist_group("pictures")
@pytest.mark.draws
def test_the_picture_is_in_the_runs_directory(
    stage: Stage, drill: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(result, "draw", DRAW)
    write(stage, "demo", CRASH.format(at="step = 1"))
    _, out, _ = drill("demo")
    assert "the picture of it: runs/demo/" in out
    assert (stage.directory.path / "drill.png").read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_a_message_says_that_there_is_no_picture(
    stage: Stage, drill: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(result, "draw", DRAW)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    write(stage, "demo", CRASH.format(at="step = 1"))
    code, out, _ = drill("demo")
    assert code == 0
    assert "no picture: matplotlib is not installed" in out


def test_an_unmet_expectation_is_reported_and_ends_with_5(stage: Stage, drill: Any) -> None:
    write(stage, "late", CRASH.format(at="step = 900"))
    code, out, _ = drill("demo", "late")
    assert code == 5
    assert "fault 1 (crash of worker-1 at step 900) was not injected: the job ended before" in out


def test_a_seed_repeats_a_random_drill(stage: Stage, drill: Any) -> None:
    facts = []
    for _ in range(2):
        code, out, _ = drill("demo", "--faults", "2", "--seed", "7", "--json")
        facts.append(json.loads(out))
        assert code == (0 if facts[-1]["passed"] else 5)
    shown = [[(f["kind"], f["task"], f["at"], f["for"]) for f in one["faults"]] for one in facts]
    assert shown[0] == shown[1]
    assert (len(shown[0]), facts[0]["seed"]) == (2, 7)


def test_a_scenarios_seed_applies_unless_another_is_given(stage: Stage, drill: Any) -> None:
    text = "seed = 3\n" + CRASH.format(at="step = 1").replace("worker-1", "random")
    write(stage, "demo", text)
    assert json.loads(drill("demo", "--json")[1])["seed"] == 3
    assert json.loads(drill("demo", "--json", "--seed", "4")[1])["seed"] == 4


def leading(made: Iterable[int]) -> acting.Life:
    """A leader that reports these steps, one each second, and ends at 103 s."""
    steps = [says(2.0 + now, "step", step=step) for now, step in enumerate(made, 1)]
    return acting.Life(
        (says(0.1, "start", attempt=1), says(0.4, "ready"), *steps, ends(103.0, 0, "finished"))
    )


def test_a_trace_is_replayed_and_its_goodput_is_measured_and_predicted(
    stage: Stage, drill: Any
) -> None:
    """The workers take turns: 20 s, 5 s and 5 s; the training makes 10 steps each second."""
    trace = stage.workspace.root / "spot.csv"
    trace.write_text("machine,left,back\na,0,200\nb,400,450\na,600,650\nb,9000,9500\n")
    made = range(10, 1001, 10)
    stage.engine.acting = {"chief-0": [leading(made)]}
    words = ("demo", "--chief", "1", "--trace", str(trace), "--speedup", "10")
    code, out, err = drill(*words, "--json")
    assert code == 0, err
    facts = json.loads(out)
    check("drill", facts)
    assert facts["passed"] and facts["reason"] == "finished"
    found = facts["goodput"]
    assert [one["task"] for one in found["absences"]] == ["worker-0", "worker-1", "worker-0"]
    lengths = [one["back_s"] - one["left_s"] for one in found["absences"]]
    assert lengths == pytest.approx([20, 5, 5], abs=0.5)
    assert found["absences"][0]["left_s"] == pytest.approx(15, abs=0.5)
    assert (found["not_replayed"], found["redone_steps"]) == (1, 0)
    assert found["measured"] == pytest.approx(1, abs=0.01)
    assert found["predicted"] == pytest.approx(1 - 30 / 2 / 99, abs=0.03)
    outcome = stage.saved()
    away = [note for note in outcome["notes"] if "was taken away at" in note]
    assert len(away) == 3 and all("by the drill, and came back" in note for note in away)
    report = json.loads((stage.directory.path / "report.json").read_text())
    assert report["goodput"] == found["sentences"]
    (worker,) = (task for task in report["tasks"] if task["name"] == "worker-0")
    assert "fault" not in {mark["kind"] for mark in worker["marks"]}
    assert "--speedup" not in err


def test_the_redone_steps_of_all_absences_are_the_total(stage: Stage, drill: Any) -> None:
    """The leader returns to a checkpoint twice after the first absence, and once after the next."""
    trace = stage.workspace.root / "spot.csv"
    trace.write_text("machine,left,back\na,0,200\nb,400,450\na,600,650\n")
    back = {30: 50, 36: 20, 70: 30}
    made = [10 * now - sum(less for at, less in back.items() if at <= now) for now in range(1, 101)]
    stage.engine.acting = {"chief-0": [leading(made)]}
    words = ("demo", "--chief", "1", "--trace", str(trace), "--speedup", "10")
    found = json.loads(drill(*words, "--json")[1])["goodput"]
    assert [one["steps_redone"] for one in found["absences"]] == [50, 20, 0]
    assert found["redone_steps"] == 70


def test_a_machine_that_does_not_come_back_does_not_fail_the_run(stage: Stage, drill: Any) -> None:
    trace = stage.workspace.root / "spot.csv"
    trace.write_text("time,machine,event\n5,a,left\n")
    steps = [says(2.0 + second, "step", step=10 * second) for second in range(1, 31)]
    stage.engine.acting = {
        "chief-0": [
            acting.Life((says(0.1, "start", attempt=1), says(0.4, "ready"), *steps,
                  ends(33.0, 0, "finished")))
        ]
    }  # fmt: skip
    code, out, err = drill("demo", "--chief", "1", "--trace", str(trace))
    assert code == 0, err
    assert "to the end" in out and "goodput 100%: 290 steps of 290" in out
    assert "passed: all is as expected" in out


@pytest.mark.parametrize("works", [True, False])
def test_an_absence_explains_a_failure_only_if_no_step_was_made_since(
    stage: Stage, drill: Any, works: bool
) -> None:
    trace = stage.workspace.root / "spot.csv"
    trace.write_text("machine,left,back\na,0,5\n")
    last = 40 if works else 21
    steps = [says(2.0 + second, "step", step=10 * second) for second in range(1, last)]
    failed = ends(43.0, 1, "failed", "worker-0 was lost (8 times; 7 retries)", "worker-0")
    begun = (says(0.1, "start", attempt=1), says(0.4, "ready"))
    stage.engine.acting = {"chief-0": [acting.Life((*begun, *steps, failed))]}
    code, _, _ = drill("demo", "--chief", "1", "--trace", str(trace))
    assert code == 5
    message = stage.saved()["message"]
    assert ("was taken away at" in message) == (not works)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["demo", "--trace", "spot.csv", "--speedup", "0"], "--speedup 0: must be more than 0"),
        (["demo", "--trace", "spot.csv", "--speedup", "nan"], "--speedup nan: must be more than"),
        (["demo", "--speedup", "5"], "--speedup and --preempt are of a trace"),
        (["demo", "--trace", "spot.csv", "--faults", "2"], "--trace spot.csv with --faults 2"),
        (["demo", "mine.toml", "--trace", "spot.csv"], "with the scenario mine.toml"),
        (["demo", "--trace", "spot.csv", "--seed", "5"], "--seed 5 with --trace spot.csv"),
        (["demo", "--trace", "spot.csv"], "No such file"),
        (["demo", "mine.toml", "--faults", "2"], "--faults 2 with the scenario mine.toml"),
        (["demo", "nonsense"], "no scenario `nonsense`"),
        (["demo"], "no scenario for demo: compose/drills/demo.toml was not found"),
        (["demo"], "`--faults 3` draws some faults"),
        (["dmo"], "no manifest `dmo`"),
        (["nonsense", "broken"], "no manifest `nonsense`"),
        (["demo", "broken"], "fault 1: task = \"worker-8\": the cluster demo has no such task"),
    ],
)  # fmt: skip
def test_invalid_arguments_start_nothing(
    stage: Stage, drill: Any, words: list[str], message: str
) -> None:
    write(stage, "broken", CRASH.format(at="step = 1").replace("worker-1", "worker-8"))
    code, _, err = drill(*words)
    assert code == 2
    assert message in err
    assert not stage.ran
