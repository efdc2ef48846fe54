"""Turns simulated outcomes and progress files into figures, tables and facts."""

from __future__ import annotations

import importlib
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from cluster_kit.cli import compare as verb
from cluster_kit.cli.manifest_options import chosen
from cluster_kit.compare import measure
from cluster_kit.compare import measure as running
from cluster_kit.compare.measure import (
    SCENARIOS,
    STRAGGLER,
    VARIANTS,
    Length,
    Result,
    Run,
    plan_runs,
    result,
    run_all,
)
from cluster_kit.compare.picture import draw
from cluster_kit.errors import EngineError, Interrupted, UsageError
from cluster_kit.observe.progress import ProgressReader
from cluster_kit.run.outcome import Outcome, TaskOutcome
from cluster_kit.workspace import Workspace
from tests.fakes.hosts import fake_host
from tests.unit.command_line import Cli

RUNS = plan_runs(VARIANTS, SCENARIOS, Length(40, 6), 2.0)
ASYNC, SYNC = RUNS[0], RUNS[1]
PROGRESS = {
    "chief-0": [
        {"time": 90.0, "event": "training", "strategy": "parameter-server"},
        {"time": 100.0, "event": "step", "step": 1, "steps_per_s": 1.0},
        {"time": 101.0, "event": "step", "step": 9, "steps_per_s": 8.0},
    ],
    "worker-0": [  # it counts its own steps, before the chief has reported the first global one
        {"time": 99.0, "event": "step", "own_steps": 1, "steps_per_s": 1.0},
    ],
    "evaluator-0": [
        {"time": 108.0, "event": "evaluation", "accuracy": 0.91, "written": 103.5},
        {"time": 111.0, "event": "evaluation", "accuracy": 0.97, "written": 106.0},
        {"time": 112.0, "event": "evaluation", "accuracy": 0.94, "written": 109.0},
    ],
}


def task(role: str, rx_bytes: int | None, tx_bytes: int | None) -> TaskOutcome:
    return TaskOutcome(f"{role}-0", role, 0, "", [], None, 0, 0, False, rx_bytes, tx_bytes)


def outcome(**different: Any) -> Outcome:
    tasks = [
        task("chief", 1000, 1000),
        task("worker", 20_000, 10_000),
        task("worker", 20_000, 30_000),
        task("ps", None, None),
        task("evaluator", 5, 5),
    ]
    figures = {"images_per_second": 2000.0, "updates": 20, "staleness_mean": 0.9,
               "staleness_max": 3, "validation_accuracy": 0.94}  # fmt: skip
    usual = {
        "cluster": "compare", "success": True, "exit_code": 0, "reason": "finished", "blame": None,
        "message": "", "last_words": "", "notes": [], "tasks": tasks, "timings_s": {"total": 30.0},
        "metrics": figures, "cure": "", "run": "",
    }  # fmt: skip
    return Outcome(**{**usual, **different})


@pytest.fixture
def entries(tmp_path: Path) -> list[Any]:
    for task, events in PROGRESS.items():
        lines = "".join(json.dumps(event) + "\n" for event in events)
        (tmp_path / "progress").mkdir(exist_ok=True)
        (tmp_path / "progress" / f"{task}.jsonl").write_text(lines)
    return ProgressReader(tmp_path, since=0).poll()


def test_time_counts_from_the_first_step_to_the_writing_of_the_checkpoint(entries: Any) -> None:
    found = result(ASYNC, outcome(), entries, 0.95).measured
    assert found is not None
    assert found.curve == ((3.5, 0.91), (6.0, 0.97), (9.0, 0.94))
    assert found.seconds_to_accuracy == 6.0
    never = result(ASYNC, outcome(), entries, 0.99).measured
    assert never is not None
    assert never.seconds_to_accuracy is None


def test_traffic_is_the_sum_of_a_roles_containers_per_update(entries: Any) -> None:
    found = result(ASYNC, outcome(), entries, 0.95).measured
    assert found is not None
    assert found.bytes_per_update == {"chief": 100.0, "worker": 4000.0}


def test_graph_mode_counts_updates_by_its_global_step(entries: Any) -> None:
    found = result(ASYNC, outcome(metrics={"global_step": 7}), entries, 0.95).measured
    assert found is not None
    assert (found.updates, found.staleness_mean) == (7, None)


def test_the_speed_is_that_from_the_first_step_to_the_last_checkpoint(entries: Any) -> None:
    """Not the program's own figure, which leaves out an epoch and saving in some of the ways."""
    found = result(ASYNC, outcome(), entries, 0.95).measured
    assert found is not None
    assert found.images_per_s == pytest.approx(7680 * 19 / 20 / 9.0, abs=0.01)
    for unknown in (
        result(ASYNC, outcome(), [], 0.95),
        result(ASYNC, outcome(metrics={}), entries, 0.95),
    ):
        assert unknown.measured is not None and unknown.measured.images_per_s is None


def test_a_failed_run_is_a_result_with_its_reason() -> None:
    ended = outcome(success=False, blame="worker-1", message="killed")
    assert result(ASYNC, ended, [], 0.95).failed == "worker-1: killed"


def written(results: list[Result]) -> str:
    console = Console(file=io.StringIO(), width=160)
    for one in measure.tables(results, 0.95):
        console.print(one)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_the_table_shows_figures_failures_and_impossible_cells(entries: Any) -> None:
    clones = next(r for r in RUNS if r.skipped)
    text = written([
        result(ASYNC, outcome(), entries, 0.95),
        Result(SYNC, failed="ps-0: no [memory]"),
        Result(clones),
    ])  # fmt: skip
    for shown in ("811", "6.0 s", "0.90 (max 3)", "chief 0.00 MB", "FAILED", "ps-0: no [memory]",
                  STRAGGLER.title, "left out", "there is no second worker"):  # fmt: skip
        assert shown in text, text


def test_facts_have_every_cell_as_json(entries: Any) -> None:
    results = [result(ASYNC, outcome(), entries, 0.95), Result(SYNC, failed="no")]
    facts = json.loads(json.dumps(measure.facts(results, 0.95, Length(40, 6), 2.0)))
    assert facts["images"] == 7680
    assert [one["variant"] for one in facts["results"]] == ["ps-async", "ps-sync"]
    assert facts["results"][0]["measured"]["curve"][1] == [6.0, 0.97]
    assert facts["results"][1]["failed"] == "no"


@pytest.fixture(scope="session")
def fonts() -> None:
    """On a new machine matplotlib starts a program to list fonts, which a unit test must not do."""
    importlib.import_module("matplotlib.font_manager")


@pytest.mark.xdist_group("pictures")
@pytest.mark.draws
@pytest.mark.usefixtures("fonts")
def test_the_picture_is_drawn_from_incomplete_results(entries: Any, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    results = [result(ASYNC, outcome(), entries, 0.95), Result(SYNC, failed="no")]
    assert draw(results, 0.95, tmp_path / "made" / "compare.png")
    assert (tmp_path / "made" / "compare.png").read_bytes().startswith(b"\x89PNG")
    assert not draw([Result(SYNC, failed="no")], 0.95, tmp_path / "nothing.png")


@pytest.mark.parametrize(
    ("measured", "words"),
    [
        (True, "(no picture: matplotlib is not installed; `make compare` installs it)"),
        (False, "(no picture: nothing was measured)"),
    ],
)
def test_a_missing_picture_is_reported_with_a_fix(
    measured: bool,
    words: str,
    entries: Any,
    root: Path,
    cli: Cli,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done = result(ASYNC, outcome(), entries, 0.95) if measured else Result(ASYNC, failed="no")
    monkeypatch.setattr(verb, "run_all", lambda *_: iter([done]))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    drawn_earlier = root / "build" / "compare" / "compare.png"
    drawn_earlier.parent.mkdir(parents=True)
    drawn_earlier.touch()
    assert words in cli("compare").err
    assert not drawn_earlier.exists(), "a picture of an earlier comparison lies beside it"


class QuietView:
    def close(self) -> None: ...


def launcher(monkeypatch: pytest.MonkeyPatch, run_directory: Path) -> list[str]:
    """Replaces `launch`: the first run fails before it starts, the second fails, the others
    succeed."""
    names: list[str] = []

    def launch(_host: object, order: Any, *_: object, **__: object) -> dict[str, Any]:
        names.append(order.overrides["name"])
        if len(names) == 1:
            raise EngineError("no room", "make some")
        good = len(names) > 2
        return outcome(success=good, exit_code=0 if good else 5, run=str(run_directory),
                       blame=None, message="it broke")  # fmt: skip

    monkeypatch.setattr(running, "launch", launch)
    return names


def test_failures_are_reported_and_the_other_runs_continue(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    names = launcher(monkeypatch, tmp_path)
    chosen = [*RUNS[:3], next(run for run in RUNS if run.skipped)]
    found = list(run_all(fake_host(), chosen, Workspace(tmp_path), QuietView, 0.95))  # type: ignore[arg-type]
    assert [one.failed for one in found] == ["no room", "it broke", "", ""]
    assert found[2].measured is not None
    assert found[3].measured is None, "a run that makes no sense was started"
    assert len(names) == 3


def test_an_interruption_ends_the_comparison(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(
        running, "launch", lambda *_, **__: outcome(success=False, exit_code=130, message="")
    )
    with pytest.raises(Interrupted):
        list(run_all(fake_host(), [ASYNC, SYNC], Workspace(tmp_path), QuietView, 0.95))  # type: ignore[arg-type]


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="--only ps-asink: not found") as caught:
        chosen(VARIANTS, ["ps-asink"], "--only", verb._key)
    assert "ps-async" in caught.value.hint
    for keys in (["ps-sync", "clones"], ["ps-sync,clones"]):
        found = chosen(VARIANTS, keys, "--only", verb._key)
        assert [one.key for one in found] == ["ps-sync", "clones"]


def test_every_run_has_a_unique_key() -> None:
    keys: list[str] = [run.key for run in RUNS]
    assert len(set(keys)) == len(keys) == 18
    assert isinstance(RUNS[0], Run)
