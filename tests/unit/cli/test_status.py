"""Which cluster status, logs and down use: one that is up, one that has ended, or an unknown
one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cluster_kit.workspace import user_name
from tests.fakes.stage import close
from tests.unit.cli.looking import FakeEngine, engine, ran
from tests.unit.command_line import MANIFEST, Cli
from tests.unit.stories import container

__all__ = ["engine"]


@pytest.mark.parametrize("verb", ["stop", "start", "down"])
def test_a_task_in_the_place_of_a_cluster_is_told(verb: str, cli: Cli, engine: FakeEngine) -> None:
    engine.up["other"] = [container("chief-0")]
    result = cli(verb, "worker-1")
    assert result.code == 2
    assert "`worker-1` is a task's name, and a cluster's is expected here; there are:" in result.err


@pytest.mark.parametrize(
    ("verb", "name"),
    [
        *((verb, name) for verb in ("status", "logs", "down") for name in ("dmo", "../compose")),
        *(("logs", name) for name in ("", ".", "older/2025")),
    ],
)
def test_an_unknown_name_is_refused_with_the_known_ones(
    verb: str, name: str, cli: Cli, root: Path, engine: FakeEngine
) -> None:
    ran(root, "older", success=True)
    engine.up["other"] = [container("chief-0")]
    result = cli(verb, name)
    assert (result.code, result.out) == (2, "")
    assert f"no cluster `{name}`: neither up, nor a manifest in compose/, nor a run" in result.err
    assert "there are: demo, older, other" in result.err
    assert ("did you mean `demo`?" in result.err) == (name == "dmo")
    told = json.loads(cli(verb, name, "--json").out)
    assert told["error"]["exit_code"] == 2


def test_a_cluster_is_known_by_its_manifest_its_runs_and_its_compose_file(
    cli: Cli, root: Path
) -> None:
    ran(root, "renamed", success=True)
    (root / "compose" / "rendered").mkdir()
    (root / "compose" / "rendered" / "compose.yaml").write_text("# cluster-kit 0.2.0 wrote this")
    for name in ("demo", "compose/demo.toml", "renamed", "rendered"):
        assert cli("down", name).code == 0
        assert "nothing to remove" in cli("down", name).err


def test_an_ended_cluster_is_known_if_its_manifest_is_invalid_or_removed(
    cli: Cli, root: Path
) -> None:
    ran(root, success=True)
    manifest = root / "compose" / "demo.toml"
    manifest.write_text("format = = 1")
    assert cli("logs", "demo").code == 0
    manifest.unlink()
    assert cli("logs", "demo").code == 0
    (root / "compose" / "new.toml").write_text("format = = 1")
    assert "fix the line" in cli("logs", "new").err


@pytest.mark.parametrize(
    ("outcome", "verdict"),
    [
        ({"success": True}, "ended 2025-03-01 10:20:30: success"),
        (
            {"success": False, "blame": "ps-0", "message": "it fell\nover"},
            "ended 2025-03-01 10:20:30: failed, blame ps-0: it fell\n",
        ),
        (
            {"success": False, "blame": "ps-0", "message": "ps-0 ended with exit code 1"},
            "ended 2025-03-01 10:20:30: failed: ps-0 ended with exit code 1\n",
        ),
        ({"success": False, "blame": None, "message": ""}, "ended 2025-03-01 10:20:30: failed\n"),
        ({}, "has no verdict: it was interrupted"),
    ],
)
def test_status_of_an_ended_cluster_shows_its_newest_run(
    outcome: dict[str, Any], verdict: str, cli: Cli, root: Path
) -> None:
    ran(root, success=False, message="an older one")
    ran(root, **outcome)
    result = cli("status", "demo")
    assert (result.code, result.out, len(result.err.splitlines())) == (0, "", 2)
    assert "no task of demo is running" in result.err
    assert f"its newest run, runs/demo/20250301-100000-2, {verdict}" in result.err
    told = json.loads(cli("status", "demo", "--json").out)
    assert told.keys() == {"demo", "newest_runs"} and told["demo"] == []
    found = told["newest_runs"]["demo"]
    assert found["run"] == str(root / "runs/demo/20250301-100000-2")
    if outcome:
        assert found["ended"] == "2025-03-01T10:20:30"
        assert verdict.strip().endswith(f": {found['verdict']}")
    else:
        assert (found["ended"], found["verdict"]) == (None, None)


@pytest.mark.parametrize("outcome", ["", "{", "[]", "null"])
def test_an_unreadable_outcome_is_no_verdict(outcome: str, cli: Cli, root: Path) -> None:
    ran(root).outcome.write_text(outcome)
    assert "has no verdict" in cli("status", "demo").err


def test_status_of_a_cluster_that_is_up_does_not_show_its_last_run(
    cli: Cli, root: Path, engine: FakeEngine
) -> None:
    ran(root, success=True)
    engine.up["demo"] = [
        container("chief-0", id="a", output="", oom=False),
        container("ps-0", id="b", oom=False),
    ]
    shown = cli("status", "demo")
    assert [line.split()[0] for line in shown.out.splitlines()] == [
        "demo", "task", "chief-0", "ps-0",
    ]  # fmt: skip
    assert cli("logs", "demo", "ps-0").out.split() == ["ps-0", "b", "says"]
    assert "newest run" not in shown.err + cli("logs", "demo").err
    assert cli("logs", "demo", "ps-1").code == 2


def test_status_says_why_another_users_tasks_show_nothing(
    cli: Cli, root: Path, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ran(root)
    engine.up["demo"] = [container("chief-0", state="running", output=str(run.output))]
    assert "is not shown" not in cli("status").out
    close(run, monkeypatch)
    told = f"what its tasks report is not shown: {run.path} belongs to {user_name(run.owner)}, who"
    assert told in cli("status").out


def test_status_without_a_name_shows_all_clusters_that_are_up(cli: Cli, engine: FakeEngine) -> None:
    assert "no cluster is up" in cli("status").err
    assert cli("status", "--json").out == "{}\n"
    engine.up["demo"] = [container("chief-0", output="")]
    assert "chief-0" in cli("status").out


def test_status_names_a_straggler_and_has_its_figures(
    cli: Cli, engine: FakeEngine, tmp_path: Path
) -> None:
    (tmp_path / "progress").mkdir()
    begun = {"time": 50, "event": "straggling", "of": "worker-1", "seconds": 20, "share": 0.2,
             "steps_per_s": 3.1, "others_steps_per_s": 12.4, "slowed": None, "limit": 0.2,
             "cause": "cpu-limit", "message": "worker-1 is a straggler: 3.1 steps/s"}  # fmt: skip
    (tmp_path / "progress" / "chief-0.jsonl").write_text(json.dumps(begun) + "\n")
    runs = {"state": "running", "exit_code": None, "output": str(tmp_path)}
    engine.up["demo"] = [container("chief-0", **runs), container("worker-1", **runs)]
    result = cli("status", "demo")
    assert result.out.splitlines()[-1] == "worker-1 is a straggler: 3.1 steps/s"
    chief, worker = json.loads(cli("status", "demo", "--json").out)["demo"]
    left_out = ("time", "event", "of", "seconds")
    figures = {key: value for key, value in begun.items() if key not in left_out}
    assert chief["straggler"] is None and worker["state"] == "running"
    assert worker["straggler"] == {"since": 30.0, "by": "chief-0", **figures}


def test_json_has_no_loss_that_is_not_a_number(
    cli: Cli, engine: FakeEngine, tmp_path: Path
) -> None:
    (tmp_path / "progress").mkdir()
    (tmp_path / "progress" / "chief-0.jsonl").write_text(
        '{"time": 50, "event": "step", "step": 1, "loss": 0.5}\n'
        '{"time": 51, "event": "step", "step": 2, "loss": NaN}\n'
    )
    engine.up["demo"] = [container("chief-0", state="running", output=str(tmp_path))]
    [chief] = json.loads(cli("status", "demo", "--json").out)["demo"]
    assert (chief["step"], chief["loss"]) == (2, None)


def test_a_manifest_stands_for_the_cluster_that_it_names(cli: Cli, root: Path) -> None:
    (root / "compose" / "file.toml").write_text(MANIFEST)
    assert "no task of demo is running" in cli("status", "file").err


def test_a_cluster_that_never_ran_has_no_newest_run(cli: Cli) -> None:
    told = json.loads(cli("status", "demo", "--json").out)
    assert told == {"demo": [], "newest_runs": {"demo": None}}


@pytest.mark.parametrize("verb", ["logs", "down", "stacks"])
def test_without_a_name_the_only_cluster_that_is_up_is_used(
    verb: str, cli: Cli, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    meant: list[str] = []
    monkeypatch.setattr(
        "cluster_kit.run.find.of_workspace", lambda _containers, _workspace, up: list(up)
    )
    monkeypatch.setattr(engine, "containers", lambda name: meant.append(name) or [])
    engine.up = {"other": []}
    assert "other: the only cluster that is up" in cli(verb).err
    assert set(meant) == {"other"}
    engine.up = {"other": [], "second": []}
    result = cli(verb)
    assert (result.code, set(meant)) == (2, {"other"})
    assert "2 clusters are up" in result.err and "name one by `--name`: other, second" in result.err
    engine.up = {"other": [], "second": [], "theirs": []}
    monkeypatch.setattr(
        "cluster_kit.run.find.of_workspace", lambda _containers, _workspace, up: list(up)[:2]
    )
    assert "2 clusters of this directory are up" in cli(verb).err
    engine.up = {"other": [], "quickstart": []}
    cli(verb)
    assert set(meant) == {"other", "quickstart"}
    engine.up = {}
    assert "quickstart" in cli(verb).err
