"""A run is found by its directory, a file with its outcome, or its cluster; anything else is
refused."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from cluster_kit.errors import UsageError
from cluster_kit.run.history import runs_of
from cluster_kit.summary import markdown as module
from cluster_kit.summary.markdown import read, values
from cluster_kit.workspace import Workspace
from tests.unit.summary.runs import EVENTS, NEVER_STARTED, failed, outcome, saved


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def test_a_run_is_found_by_directory_file_cluster_and_as_the_newest(workspace: Workspace) -> None:
    run = saved(workspace.root, failed())
    named = (f"demo/{run.name}", "demo/latest", str(run.parent))
    for reference in (str(run), str(run / "outcome.json"), "demo", *named, ""):
        evidence = read(reference, workspace)
        assert (evidence.outcome.blame, evidence.outcome.run) == ("chief-0", str(run))
        assert evidence.outcome.tasks == failed().tasks
        assert evidence.events == EVENTS
        assert evidence.losses == ((10, 2.0), (30, 1.0)), "and no others'"


def test_the_output_of_up_leads_to_the_run(workspace: Workspace, tmp_path: Path) -> None:
    run = saved(workspace.root, outcome())
    printed = tmp_path / "printed.json"
    printed.write_text((run / "outcome.json").read_text())
    assert read(str(printed), workspace).events == EVENTS
    printed.write_text(json.dumps({**NEVER_STARTED, "run": str(run)}))
    assert read(str(printed), workspace).outcome.metrics == outcome().metrics


def test_of_a_resumed_run_only_its_own_part_is_read(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = saved(workspace.root, outcome(id="b"))

    def recorded(identity: str) -> None:
        tasks = [SimpleNamespace(name=name) for name in ("chief-0", "evaluator-0")]
        sizes = {"evaluator-0.jsonl": 10**6}
        kept = SimpleNamespace(
            id=identity, since=103.5, sizes=sizes, cluster=SimpleNamespace(tasks=tasks)
        )
        monkeypatch.setattr(module, "read_record", lambda _run: kept)

    recorded("b")
    evidence = read(str(run), workspace)
    assert evidence.events == EVENTS[3:]
    assert evidence.losses == ((30, 1.0),)
    assert evidence.ended == pytest.approx(103.5 + 8.04)
    recorded("another run's")
    assert read(str(run), workspace).events == EVENTS


def test_a_record_of_another_version_is_ignored(workspace: Workspace) -> None:
    run = saved(workspace.root, outcome())
    (run / "run.json").write_text('{"id": 1}')
    assert read(str(run), workspace).events == EVENTS


def test_a_run_that_was_moved_is_read_in_its_new_place(
    workspace: Workspace, tmp_path: Path
) -> None:
    run = saved(workspace.root, outcome())
    moved = run.rename(tmp_path / "artifact")
    evidence = read(str(moved), workspace)
    assert evidence.events == EVENTS
    assert evidence.outcome.run == str(moved), "not where it was"


def test_without_its_newest_run_a_cluster_has_the_one_before(workspace: Workspace) -> None:
    run = saved(workspace.root, outcome())
    latest = run.parent / "latest"
    latest.unlink()
    latest.symlink_to("20250302-100000")
    for reference in ("demo", ""):
        assert read(reference, workspace).outcome.run == str(run)
    assert [past.newest for past in runs_of(workspace)] == [True]


def test_while_the_newest_run_goes_on_the_one_before_has_ended_last(workspace: Workspace) -> None:
    run = saved(workspace.root, outcome())
    (run.parent / "20990302-100000" / "output").mkdir(parents=True)
    (run.parent / "latest").unlink()
    (run.parent / "latest").symlink_to("20990302-100000")
    assert read("", workspace).outcome.run == str(run)


@pytest.mark.parametrize(("code", "reason"), [(2, "manifest"), (3, "host"), (4, "engine"),
                                              (130, "interrupted"), (1, "internal")])  # fmt: skip
def test_a_run_that_never_started_has_its_error(
    code: int, reason: str, workspace: Workspace, tmp_path: Path
) -> None:
    printed = tmp_path / "printed.json"
    error = {**NEVER_STARTED["error"], "exit_code": code}  # type: ignore[dict-item]
    printed.write_text(json.dumps({**NEVER_STARTED, "error": error, "run": "/gone"}))
    found = read(str(printed), workspace).outcome
    assert (found.reason, found.exit_code, found.run) == (reason, code, "")
    assert found.message == "worker = 0: a job"


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "{}", "12", '{"success": 1, "tasks": 3}', '{"success": 1, "tasks": [{}]}',
     '{"success": false, "error": 3}', '{"success": false, "error": {}}', "\x00",
     '{"success": true, "format": 2}', '{"success": true, "timings_s": 5}',
     '{"success": true, "run": null}', '{"success": "perhaps"}'],
)  # fmt: skip
def test_a_file_that_is_not_an_outcome_is_refused_with_the_expected_form(
    content: str, workspace: Workspace, tmp_path: Path
) -> None:
    file = tmp_path / "other.json"
    file.write_text(content)
    with pytest.raises(UsageError) as caught:
        read(str(file), workspace)
    assert str(file) in caught.value.message and "outcome.json" in caught.value.hint


@pytest.mark.parametrize("reference", ["nope", "no/where", "demo/no-run", "demo/\0", "..", "\0"])
def test_a_missing_file_is_refused(reference: str, workspace: Workspace) -> None:
    saved(workspace.root, outcome())
    with pytest.raises(UsageError):
        read(reference, workspace)


def test_without_an_ended_run_there_is_no_newest(workspace: Workspace) -> None:
    with pytest.raises(UsageError, match=r"no run in .*runs has ended yet"):
        read("", workspace)


def test_values_are_one_line_each() -> None:
    assert values(failed(run="/a\nreason=finished")) == {
        "success": "false",
        "exit_code": "5",
        "reason": "failed",
        "blame": "chief-0",
        "run": "/a reason=finished",
        "outcome": "/a reason=finished/outcome.json",
    }
    assert values(outcome(run=""))["outcome"] == ""
