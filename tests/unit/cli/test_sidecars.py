"""status, logs, exec and restart for the sidecars of a cluster that is up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster_kit.machine import host_facts
from cluster_kit.run import prepare
from tests.fakes.acting import BESIDE, Life, dies, ends, prints, says
from tests.fakes.hosts import Machine
from tests.fakes.stage import NAME, Stage, set_up
from tests.unit.command_line import MANIFEST, Cli

LONG = Life((says(0.1, "start", attempt=1), says(0.4, "ready"), ends(300.0, 0, "finished")))
SIDECARS = '[sidecar.cache]\nimage = "redis:7"\n[sidecar.board]\nimage = "board"\n'


@pytest.fixture
def stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Path, cli: Cli, machine: Machine
) -> Iterator[Stage]:
    """A cluster that is up, and that no process watches; one of its sidecars has crashed."""
    monkeypatch.setattr(prepare, "gather", host_facts.gather)
    for made in set_up(tmp_path, machine):
        (root / "compose" / f"{NAME}.toml").write_text(MANIFEST + SIDECARS)
        crash = Life((prints(0.2, "no such file"), dies(0.5, 3)))
        made.engine.acting = {"chief-0": [LONG], "board": [crash, BESIDE]}
        assert cli("up", NAME, "--detach").code == 0
        made.clock.pass_by(2)
        yield made


def test_status_has_a_line_for_each_sidecar(cli: Cli, stage: Stage) -> None:
    shown = cli("status", NAME).out
    assert "sidecar board at " in shown and ": ended (exit code 3)" in shown
    assert "sidecar cache at " in shown and ": running" in shown
    facts = json.loads(cli("status", NAME, "--json").out)
    assert {task["name"] for task in facts[NAME]}.isdisjoint({"board", "cache"})
    board, cache = facts["sidecars_of"][NAME]
    assert (board["name"], board["exit_code"], cache["state"]) == ("board", 3, "running")
    assert cache["ip"].endswith(".12") and board["ip"].endswith(".13")


def test_logs_has_the_lines_of_sidecars(cli: Cli, stage: Stage) -> None:
    assert "board no such file" in cli("logs", NAME).out
    only = cli("logs", NAME, "cache").out
    assert "cache listening" in only and "board" not in only


def test_a_sidecar_is_restarted(cli: Cli, stage: Stage) -> None:
    assert "demo: board was restarted\n" in cli("restart", "board").err
    assert "exit code" not in cli("status", NAME).out.split("sidecar board")[1].split("\n")[0]
    assert "there are: " in (output := cli("restart", "bord").err) and "`board`" in output


def test_a_command_runs_in_a_sidecar_unless_it_has_ended(
    cli: Cli, stage: Stage, machine: Machine
) -> None:
    ran: list[list[str]] = []
    machine.starts(hand_over=lambda command: ran.append(command) or 0)
    assert cli("exec", "cache", "--", "ls").code == 0
    assert ran[0][-1] == "ls" and "--workdir" not in ran[0], "it has no /output"
    result = cli("exec", "board", "--", "ls")
    assert result.code == 3 and "board of demo has ended (exit code 3)" in result.err


def test_down_removes_sidecars(cli: Cli, stage: Stage) -> None:
    assert cli("down", NAME).code == 0
    assert not stage.engine.boxes
