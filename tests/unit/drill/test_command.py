"""The command `cluster-kit drill`, with an engine in memory."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from cluster_kit import __main__
from cluster_kit.drill import result
from cluster_kit.util import process, stdio
from tests.fakes.stage import Stage

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


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["demo", "mine.toml", "--faults", "2"], "--faults 2 with the scenario mine.toml"),
        (["demo", "nonsense"], "no scenario `nonsense`"),
        (["demo"], "no scenario for demo: compose/drills/demo.toml was not found"),
        (["demo"], "`--faults 3` draws some faults"),
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
