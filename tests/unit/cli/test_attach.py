"""attach, wait and `up --detach` on the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster_kit.cli.manifest_options import BARE
from cluster_kit.machine import host_facts
from cluster_kit.run import prepare
from cluster_kit.run.cluster_lock import claim
from cluster_kit.run.launch import Milestone
from tests.fakes.acting import Life, ends
from tests.fakes.hosts import Machine
from tests.fakes.stage import NAME, Stage, set_up
from tests.unit.command_line import Cli


@pytest.fixture
def stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Path, machine: Machine
) -> Iterator[Stage]:
    """A stage in the workspace of the command line."""
    assert root == tmp_path
    monkeypatch.setattr(prepare, "gather", host_facts.gather)
    yield from set_up(tmp_path, machine)


def test_a_detached_up_prints_the_next_commands(cli: Cli, stage: Stage) -> None:
    result = cli("up", NAME, "--detach")
    assert result.code == 0
    assert result.out.startswith("demo has started in the background; its run is runs/demo/2")
    for verb in ("attach", "wait", "logs", "down"):
        assert f"cluster-kit {verb} demo  " in result.out
    assert len(stage.engine.boxes) == 5
    again = cli("up", NAME)
    assert again.code == 3
    assert "`cluster-kit attach demo` continues it" in again.err


def test_a_detached_up_prints_facts_as_json(cli: Cli, stage: Stage) -> None:
    facts = json.loads(cli("up", NAME, "--detach", "--json").out)
    assert facts == {"cluster": "demo", "run": str(stage.directory.path), "detached": True}


def test_keep_is_refused_with_detach(cli: Cli, stage: Stage) -> None:
    result = cli("up", NAME, "--detach", "--keep")
    assert result.code == 2
    assert "cluster-kit attach NAME --keep" in result.err
    assert not stage.ran


@pytest.mark.parametrize("verb", ["attach", "wait"])
def test_a_successful_run_is_reported(cli: Cli, stage: Stage, verb: str) -> None:
    cli("up", NAME, "--detach")
    result = cli(verb, NAME)
    assert result.code == 0
    assert result.out.startswith("success in ")
    assert ("running demo on" in result.err) == (verb == "attach")
    assert stage.is_clean()


@pytest.mark.parametrize("verb", ["attach", "wait"])
def test_a_failed_run_is_reported_with_its_code_and_as_json(
    cli: Cli, stage: Stage, verb: str
) -> None:
    stage.detach({"chief-0": [Life((ends(1.0, 1, "failed", "E: no"),))]})
    result = cli(verb, NAME, "--json")
    facts = json.loads(result.out)
    assert (result.code, facts["exit_code"], facts["blame"]) == (5, 5, "chief-0")
    assert facts == stage.saved()


def test_an_interrupted_wait_leaves_the_cluster_up(cli: Cli, stage: Stage) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    stage.detach()
    stage.clock.at(0.7, interrupt)
    result = cli("wait", NAME)
    assert result.code == 130
    assert "it keeps running" in result.err
    assert "cluster-kit attach demo" in result.err
    assert len(stage.engine.boxes) == 5


def test_an_interrupted_wait_names_no_attach_while_another_process_watches(
    cli: Cli, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    stage.detach()
    monkeypatch.setattr(stage.clock, "sleep", interrupt)
    with claim(stage.host, stage.engine, NAME, stage.directory.path.parent):
        result = cli("wait", NAME)
    assert result.code == 130
    assert "demo keeps running, and another process watches it" in result.err
    assert "attach" not in result.err


def test_attach_can_keep_the_containers(cli: Cli, stage: Stage) -> None:
    cli("up", NAME, "--detach")
    result = cli("attach", NAME, "--keep")
    assert result.code == 0
    assert "still there: `cluster-kit status demo`" in result.out
    assert len(stage.engine.boxes) == 5


@pytest.mark.parametrize("verb", ["attach", "wait"])
def test_an_unknown_name_is_a_usage_error_as_with_logs(cli: Cli, stage: Stage, verb: str) -> None:
    output, logs = cli(verb, "dmo"), cli("logs", "dmo")
    assert (output.code, output.err) == (2, logs.err)
    nothing = cli(verb, NAME)
    assert nothing.code == 2
    assert "no container of the cluster demo is there" in nothing.err
    assert stage.is_clean()


@pytest.mark.parametrize("verb", ["attach", "wait"])
def test_without_a_name_the_only_cluster_that_is_up_is_used(
    cli: Cli, stage: Stage, verb: str
) -> None:
    cli("up", NAME, "--detach")
    result = cli(verb)
    assert result.code == 0
    assert f"{NAME}: the only cluster that is up" in result.err
    assert "success in " in result.out


def test_a_detached_up_returns_when_all_servers_answer(cli: Cli, stage: Stage) -> None:
    result = cli("up", NAME, "--detach", "--ready")
    assert result.code == 0, result.err
    assert "demo has started in the background, all servers answer; its run is" in result.out
    events = [line["event"] for line in progress(stage)]
    assert "ready" in events and "step" not in events
    assert not stage.directory.outcome.exists()
    assert cli("attach", NAME).code == 0
    assert stage.is_clean()


@pytest.mark.parametrize("option", [("--ready=step",), ("--ready", "step")])
def test_a_detached_up_can_return_at_the_first_step(
    cli: Cli, stage: Stage, option: tuple[str, ...]
) -> None:
    result = cli("up", NAME, "--detach", *option, "--json")
    assert json.loads(result.out)["ready"] == "step"
    assert "step" in [line["event"] for line in progress(stage)]
    assert cli("wait", NAME).code == 0


def test_a_run_that_fails_before_that_is_judged_and_removed(cli: Cli, stage: Stage) -> None:
    stage.engine.acting = {"chief-0": [Life((ends(1.0, 6, "start-deadline", "no ps-0"),))]}
    result = cli("up", NAME, "--detach", "--ready")
    assert result.code == 6
    assert "no ps-0" in result.out
    assert stage.saved()["reason"] == "start-deadline"
    assert stage.is_clean()


def test_an_interrupt_before_that_removes_everything(cli: Cli, stage: Stage) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    stage.clock.at(0.3, interrupt)
    assert cli("up", NAME, "--detach", "--ready=step").code == 130
    assert stage.is_clean()


def test_ready_requires_detach(cli: Cli, stage: Stage) -> None:
    result = cli("up", NAME, "--ready")
    assert (result.code, stage.ran) == (2, False)
    assert "--ready without --detach" in result.err
    assert cli("up", NAME, "--detach", "--ready=soon").code == 2
    assert not stage.ran


def progress(stage: Stage) -> list[dict[str, Any]]:
    """Returns what the leader has written so far."""
    file = stage.directory.output / "progress" / "chief-0.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_only_a_failed_run_is_kept(cli: Cli, stage: Stage) -> None:
    assert cli("up", NAME, "--keep=failed").code == 0
    assert stage.is_clean()
    assert stage.saved()["kept"] is False
    stage.engine.acting = {"chief-0": [Life((ends(1.0, 1, "failed", "E: no"),))]}
    result = cli("up", "--keep", "failed", NAME)
    assert result.code == 5
    assert "still there: `cluster-kit status demo`" in result.out
    assert len(stage.engine.boxes) == 5
    assert stage.saved()["kept"] is True


def test_keep_needs_no_value(cli: Cli, stage: Stage) -> None:
    assert cli("up", "--keep", NAME).code == 0
    assert len(stage.engine.boxes) == 5
    assert cli("up", NAME, "--keep=some").code == 2


def test_the_values_of_ready_are_the_milestones() -> None:
    assert BARE["--ready"] == tuple(Milestone)


def test_render_shows_the_difference_from_the_running_cluster(cli: Cli, stage: Stage) -> None:
    refused = cli("render", NAME, "--diff=running")
    assert (refused.code, refused.err.splitlines()[0]) == (2, "error: no cluster demo is up")
    cli("up", NAME, "--detach")
    assert cli("render", NAME, "--diff=running").out == ""
    shown = cli("render", NAME, "--workers", "3", "--diff", "running").out.splitlines()
    assert shown[0] == f"--- runs/demo/{stage.directory.path.name}/compose.yaml"
    assert any(line.startswith("+  worker-2:") for line in shown)
    assert "worker-2" not in (stage.workspace.root / "compose/demo/compose.yaml").read_text()
    assert cli("render", NAME, "--portable", "--diff=running").code == 2
