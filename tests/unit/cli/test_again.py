"""restart, stop and start on the command line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster_kit.cli import stop
from cluster_kit.machine import host_facts
from cluster_kit.run import prepare
from tests.fakes.acting import LEADS, Life, ends, says
from tests.fakes.hosts import Machine
from tests.fakes.stage import NAME, Stage, set_up
from tests.unit.command_line import Cli

LONG = Life((says(0.1, "start", attempt=1), says(0.4, "ready"), ends(300.0, 0, "finished")))


@pytest.fixture
def stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Path, cli: Cli, machine: Machine
) -> Iterator[Stage]:
    """A cluster that is up, and that no process watches."""
    assert root == tmp_path
    monkeypatch.setattr(prepare, "gather", host_facts.gather)
    for made in set_up(tmp_path, machine):
        made.engine.acting = {"chief-0": [LONG, LEADS]}
        assert cli("up", NAME, "--detach").code == 0
        made.clock.pass_by(2)
        yield made


def test_a_task_is_restarted(cli: Cli, stage: Stage) -> None:
    result = cli("restart", "worker-1")
    assert (result.code, result.out) == (0, "")
    assert "demo: worker-1 was restarted\n" in result.err
    result = cli("restart", "chief-0", "--name", NAME)
    assert "chief-0 was restarted: the job ends with it, so all tasks were" in result.err
    facts = json.loads(cli("restart", "ps-0", "--json").out)
    assert facts == {"cluster": NAME, "restarted": ["ps-0"]}


@pytest.mark.parametrize(
    ("task", "told"),
    [
        ("worker-2", "did you mean `worker-"),
        ("wroker-1", "did you mean `worker-1`"),
        (NAME, "--name"),
    ],
)
def test_an_unknown_task_is_reported(task: str, told: str, cli: Cli, stage: Stage) -> None:
    result = cli("restart", task)
    assert result.code == 2 and told in result.err
    assert cli("restart").code == 2


def test_stop_asks_once_in_a_terminal(
    cli: Cli, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    answers = [False, True]

    def confirm(text: str, **_: object) -> bool:
        asked.append(text)
        return answers.pop(0)

    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(stop.typer, "confirm", confirm)
    result = cli("stop", NAME)
    assert (result.code, asked) == (1, ["Stop demo, 5 tasks, until `cluster-kit start`?"])
    assert "demo continues: nothing was stopped" in result.err
    assert "demo is stopped;" in cli("stop", NAME).err
    assert "demo is stopped already" in cli("stop", NAME).err
    cli("start", NAME)
    stage.clock.pass_by(2)
    assert "demo is stopped;" in cli("stop", NAME, "--yes").err
    assert len(asked) == 2, "nor of one that is stopped already"


def test_an_ended_job_without_a_verdict_has_the_command_that_judges_it(
    cli: Cli, stage: Stage
) -> None:
    assert "not judged" not in cli("status", NAME).out
    stage.clock.pass_by(600)
    assert "ended, not judged: `cluster-kit attach demo`" in cli("status", NAME).out


def test_a_task_that_was_ended_from_outside_has_the_command_that_starts_it(
    cli: Cli, stage: Stage
) -> None:
    told = "worker-1 was ended: `cluster-kit restart worker-1 --name demo` starts it"
    assert told not in cli("status", NAME).out
    stage.engine.end(next(b.id for b in stage.engine.boxes.values() if b.task == "worker-1"))
    assert told in cli("status", NAME).out
    starts = "worker-1 has ended: `cluster-kit restart worker-1 --name demo` starts it"
    assert starts in cli("start", NAME).err
    cli("restart", "worker-1")
    assert told not in cli("status", NAME).out
    assert starts not in cli("start", NAME).err


def test_a_name_given_to_another_manifests_run_leads_to_the_command_that_repeats_it(
    cli: Cli, stage: Stage
) -> None:
    cli("down", NAME)
    assert cli("up", NAME, "--name", "mine", "--workers", "1", "--detach").code == 0
    refused = cli("up", "mine", "--resume")
    assert refused.code == 2
    assert "`cluster-kit up demo --workers 1 --name mine` repeats the newest one" in refused.err
    missing = cli("up", "min").err
    assert "repeats" not in missing


def test_a_stopped_cluster_can_be_started_again(cli: Cli, stage: Stage) -> None:
    assert "demo is stopped; `cluster-kit start demo` goes on" in cli("stop").err
    assert "demo is stopped already" in cli("stop", NAME).err
    shown = cli("ps", NAME)
    assert "stopped: `cluster-kit start demo` goes on" in shown.out
    result = cli("exec", "chief-0", "ls")
    assert result.code == 3 and "demo is stopped" in result.err
    result = cli("restart", "worker-1")
    assert result.code == 3 and "`cluster-kit start demo` goes on" in result.err
    stage.clock.pass_by(30)
    assert json.loads(cli("start", "--json").out) == {"cluster": NAME, "started": True}
    assert "demo runs already" in cli("start", NAME).err
    assert "stopped:" not in cli("ps", NAME).out
    result = cli("wait", NAME)
    assert result.code == 0
    assert "note: the cluster was stopped at" in result.out


@pytest.mark.parametrize("verb", ["stop", "start"])
def test_a_missing_cluster_is_reported(verb: str, cli: Cli, stage: Stage) -> None:
    assert cli(verb, "dmo").code == 2
    cli("down", NAME)
    result = cli(verb, NAME)
    assert result.code == 3
    assert "no container of the cluster demo is there" in result.err
    assert "start it with `cluster-kit up demo`" in result.err
