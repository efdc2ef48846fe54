"""exec, shell and ps: which cluster and task they use, and how the command runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from cluster_kit.observe import user_requests
from cluster_kit.platforms.engine import Container
from cluster_kit.run.task_exec import UNPRIVILEGED
from tests.fakes.hosts import Machine
from tests.unit.cli.clusters_up import ClustersUp
from tests.unit.command_line import Cli
from tests.unit.stories import container


@dataclass
class FakeEngine(ClustersUp):
    """Clusters by name; a command that `docker exec` runs ends with `code`."""

    ran: list[list[str]] = field(default_factory=list)
    asked: list[tuple[str, ...]] = field(default_factory=list)
    code: int = 0
    interrupted: bool = False

    def info(self) -> dict[str, object]:
        return {}

    def hand_over(self, command: Sequence[str]) -> int:
        self.ran.append(list(command))
        if self.interrupted:
            raise KeyboardInterrupt
        return self.code

    def ask(self, container_id: str, command: Sequence[str], within_s: int) -> str:
        self.asked.append((container_id, *command))
        return ""


@pytest.fixture(autouse=True)
def engine(monkeypatch: pytest.MonkeyPatch, machine: Machine) -> FakeEngine:
    fake = FakeEngine()
    machine.connects(lambda: fake)
    machine.starts(hand_over=fake.hand_over)
    return fake


def running(name: str, **different: Any) -> Container:
    return container(
        name, **{"state": "running", "exit_code": None, "id": f"id-{name}"} | different
    )


def test_a_command_runs_in_the_task_and_its_exit_code_is_passed_on(
    cli: Cli, engine: FakeEngine
) -> None:
    engine.up["demo"], engine.code = [running("chief-0"), running("ps-0")], 41
    result = cli("exec", "ps-0", "--", "ls", "-l", "--name", "x")
    assert (result.code, result.out) == (41, "")
    assert "demo: the only cluster that is up" in result.err
    (ran,) = engine.ran
    assert ran[:3] == ["docker", "exec", "--interactive"] and "--tty" not in ran
    assert ran[ran.index("--workdir") + 1] == "/output"
    assert ran[-5:] == ["id-ps-0", "ls", "-l", "--name", "x"]


def test_options_of_the_command_need_no_dashes_before_them(cli: Cli, engine: FakeEngine) -> None:
    engine.up["demo"] = [running("chief-0")]
    assert cli("exec", "chief-0", "ls", "-la", "/output").code == 0
    assert engine.ran[0][-4:] == ["id-chief-0", "ls", "-la", "/output"]


def test_the_command_gets_a_terminal_if_there_is_one(
    cli: Cli, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.up["demo"] = [running("chief-0")]
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert cli("shell", "chief-0").code == 0
    assert "--tty" in engine.ran[0]
    assert engine.ran[0][-3:-1] == ["sh", "-c"]


def test_a_task_that_drops_root_is_entered_as_its_own_user(cli: Cli, engine: FakeEngine) -> None:
    engine.up["demo"] = [running("chief-0", user="1000:1000")]
    cli("exec", "chief-0", "id")
    assert engine.ran[0][engine.ran[0].index("--user") + 1] == "1000:1000"


def test_a_command_of_root_has_none_of_its_containers_capabilities(
    cli: Cli, engine: FakeEngine
) -> None:
    engine.up["demo"] = [running("chief-0", user="0:0")]
    cli("exec", "chief-0", "id", "-u")
    assert engine.ran[0][-5:] == ["python3", "-ISc", UNPRIVILEGED, "id", "-u"]


def test_ctrl_c_reaches_the_command_in_the_container(cli: Cli, engine: FakeEngine) -> None:
    engine.up["demo"], engine.interrupted = [running("chief-0")], True
    result = cli("exec", "chief-0", "--", "sleep", "100")
    assert result.code == 130 and "interrupted" in result.err
    (asked,) = engine.asked
    mark = engine.ran[0][engine.ran[0].index("--env") + 1]
    assert asked[0] == "id-chief-0" and asked[-1] == mark and len(mark) > 20


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("exec", "chief-1", "--", "ls"), 2, ("no task chief-1", "did you mean `chief-0`?")),
        (("shell", "cheif-0"), 2, ("did you mean `chief-0`?", "there are: chief-0, worker-0")),
        (("exec", "chief-0"), 2, ("no command is given", "exec chief-0 -- COMMAND")),
        (("exec", "--nmae", "demo", "--", "ls"), 2, ("unknown option --nmae",)),
        (("exec", "demo", "--", "ls"), 2, ("demo is a cluster", "--name demo")),
        (("exec", "chief-0", "--name", "dmo", "ls"), 2, ("no cluster `dmo`", "`demo`?")),
        (("exec", "worker-0", "--", "ls"), 3, ("worker-0 of demo has ended (exit code 137)",)),
        (("exec", "worker-1", "--", "ls"), 3, ("is paused", "docker unpause demo-worker-1")),
        (("shell", "worker-2"), 3, ("is restarting",)),
        (("shell", "worker-3"), 3, ("is created",)),
    ],
)
def test_tasks_that_cannot_be_entered_are_reported(
    words: tuple[str, ...], code: int, told: tuple[str, ...], cli: Cli, engine: FakeEngine
) -> None:
    engine.up["demo"] = [
        running("chief-0"),
        container("worker-0"),
        running("worker-1", state="paused"),
        running("worker-2", state="restarting", exit_code=1),
        running("worker-3", state="created"),
    ]
    result = cli(*words)
    assert (result.code, engine.ran) == (code, [])
    for words_ in told:
        assert words_ in result.err


def test_in_a_stopped_cluster_the_command_that_starts_it_is_named(
    cli: Cli, engine: FakeEngine, tmp_path: Path
) -> None:
    engine.up["demo"] = [container("chief-0", output=str(tmp_path / "output"))]
    user_requests.write(tmp_path, user_requests.STOP, ["chief-0"], 5.0)
    result = cli("exec", "chief-0", "--", "ls")
    assert result.code == 3
    assert "demo is stopped" in result.err and "`cluster-kit start demo`" in result.err
    assert "restart" not in result.err


def test_with_several_clusters_a_name_is_required(cli: Cli, engine: FakeEngine) -> None:
    engine.up = {"demo": [running("chief-0")], "other": [running("chief-0")]}
    result = cli("exec", "chief-0", "--", "ls")
    assert result.code == 2 and "name one by `--name`: demo, other" in result.err
    assert cli("exec", "chief-0", "--name", "demo", "--", "ls").code == 0
    engine.up = {}
    result = cli("exec", "chief-0", "--name", "demo", "--", "ls")
    assert result.code == 3 and "no task of demo is running" in result.err


def test_ps_equals_status(cli: Cli, engine: FakeEngine) -> None:
    engine.up["demo"] = [running("chief-0", output="")]
    assert cli("ps", "demo").out == cli("status", "demo").out != ""
