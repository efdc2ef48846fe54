"""Which cluster a command uses without a name; a name can be an argument or an option, in every
verb."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import Any

import pytest

from cluster_kit.cli import stop
from cluster_kit.workspace import RunDirectory
from tests.fakes.hosts import Machine
from tests.unit.cli.clusters_up import ClustersUp
from tests.unit.command_line import Cli
from tests.unit.stories import container


class Engine(ClustersUp):
    """Records what it was asked to do, and with which container."""

    def __init__(self) -> None:
        super().__init__()
        self.done: list[str] = []

    def info(self) -> dict[str, object]:
        return {}

    def remove(self, cluster: str, run: str = "") -> int:
        self.done.append(f"remove {cluster}")
        return 1

    def runs(self, cluster: str, below: Path, output: str = "") -> None:
        """Add a running cluster whose run is below this directory."""
        output = output or str(below / "runs" / cluster / "20250301-100000" / "output")
        given: dict[str, Any] = {"state": "running", "exit_code": None, "cluster": cluster}
        self.up[cluster] = [container("chief-0", id=f"id-{cluster}", output=output, **given)]


@pytest.fixture(autouse=True)
def engine(monkeypatch: pytest.MonkeyPatch, machine: Machine) -> Engine:
    one = Engine()

    def hand_over(command: list[str]) -> int:
        one.done.append(f"exec {command[-2]}")
        return 0

    monkeypatch.setattr(stop, "take_down", lambda _, engine, name, **__: engine.remove(name))
    machine.connects(lambda: one)
    machine.starts(hand_over=hand_over)
    return one


def test_a_cluster_of_this_directory_is_preferred_to_others(
    cli: Cli, engine: Engine, root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    engine.runs("theirs", tmp_path_factory.mktemp("elsewhere"))
    engine.runs("ours", root)
    result = cli("exec", "chief-0", "ls")
    assert (result.code, engine.done) == (0, ["exec id-ours"])
    assert "ours: the only cluster of this directory that is up" in result.err


def test_down_names_the_owner_of_another_users_cluster(
    cli: Cli, engine: Engine, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.runs("ours", root)
    (root / "runs" / "ours" / "20250301-100000" / "output").mkdir(parents=True)
    assert "ours: 1 container and its network removed" in cli("down").err
    other = pwd.getpwuid(1 if os.getuid() == 0 else 0)
    monkeypatch.setattr(RunDirectory, "owner", other.pw_uid)
    told = f"ours (of {other.pw_name}, in {root}): 1 container and its network removed"
    assert told in cli("down").err


def test_a_manifest_of_this_directory_does_not_end_a_cluster_of_another(
    cli: Cli, engine: Engine, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("elsewhere")
    engine.runs("demo", other)
    (other / "runs" / "demo" / "20250301-100000" / "output").mkdir(parents=True)
    it = "compose/demo.toml"
    for verb in (("down",), ("stop", "--yes"), ("start",), ("restart", "chief-0"), ("profile",)):
        refused = cli(*verb, "--name", it)
        assert refused.code == 2 and f"was started in {other}" in refused.err, verb
    assert engine.done == []
    assert f"demo (in {other}): 1 container and its network" in cli("down", "demo").err


def test_down_names_the_output_of_a_cluster_that_compose_alone_has_started_with_another(
    cli: Cli, engine: Engine, tmp_path_factory: pytest.TempPathFactory
) -> None:
    output = tmp_path_factory.mktemp("elsewhere") / "output"
    output.mkdir()
    engine.runs("plain", output.parent, str(output))
    assert f"plain (output in {output}): 1 container and its network" in cli("down", "plain").err


def test_a_link_to_this_directory_counts_as_this_directory(
    cli: Cli, engine: Engine, root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    engine.runs("ours", root)
    engine.runs("theirs", Path("/elsewhere"))
    (link := tmp_path / "link").symlink_to(root)
    monkeypatch.chdir(link)
    assert cli("exec", "chief-0", "ls").code == 0
    assert engine.done == ["exec id-ours"]


def test_a_cluster_of_another_directory_is_entered_without_a_name_but_not_ended(
    cli: Cli, engine: Engine, tmp_path_factory: pytest.TempPathFactory
) -> None:
    engine.runs("theirs", tmp_path_factory.mktemp("elsewhere"))
    result = cli("exec", "chief-0", "ls")
    assert "theirs: the only cluster that is up, started elsewhere" in result.err
    assert engine.done == ["exec id-theirs"]
    for verb in (("down",), ("stop",), ("start",), ("restart", "chief-0"), ("profile",)):
        result = cli(*verb)
        assert result.code == 2, verb
        assert "no cluster of this directory is up, only those of others: theirs" in result.err
        assert "`--name NAME`" in result.err
    assert engine.done == ["exec id-theirs"]


def test_the_rest_of_a_cluster_without_containers_belongs_to_the_directory_in_which_it_ran(
    cli: Cli, engine: Engine, root: Path
) -> None:
    engine.up["demo"] = []
    assert cli("down").code == 2
    (root / "runs" / "demo" / "20250301-100000" / "output").mkdir(parents=True)
    assert cli("down").code == 0
    assert engine.done == ["remove demo"]


@pytest.mark.parametrize(
    "words",
    [
        ("status", "other"), ("ps", "--name", "other"), ("status", "--name=other"),
        ("logs", "other"), ("logs", "--name", "other", "chief-0"),
        ("logs", "chief-0", "--name=other"),
        ("exec", "other", "chief-0", "--", "ls"), ("exec", "chief-0", "--name", "other", "ls"),
        ("shell", "other", "chief-0"), ("shell", "--name", "other", "chief-0"),
        ("attach", "--name", "other"), ("wait", "--name", "other"), ("stacks", "--name", "other"),
        ("profile", "--name", "other"), ("stop", "--name", "other"), ("start", "--name", "other"),
        ("down", "--name", "other"), ("report", "--name", "other"), ("summary", "--name", "other"),
        ("tensorboard", "--name", "other"), ("metrics", "--name", "other"),
        ("bug-report", "--name", "other"), ("restart", "other", "chief-0"),
    ],
)  # fmt: skip
def test_a_name_is_an_argument_or_an_option(
    words: tuple[str, ...], cli: Cli, engine: Engine
) -> None:
    """No cluster of that name exists: each command reports that, and no error about the option."""
    result = cli(*words)
    assert "no such option" not in result.err.lower(), result.err
    assert "other" in result.err and "cluster" in result.err, result.err
    assert engine.done == []


def test_words_after_two_dashes_belong_to_the_command(cli: Cli, engine: Engine, root: Path) -> None:
    engine.runs("ours", root)
    assert cli("exec", "chief-0", "--", "echo", "worker-1").code == 0
    assert engine.done == ["exec echo"]


def test_a_keys_singular_is_accepted_like_its_plural(cli: Cli) -> None:
    one, other = (
        cli("render", "demo", option, "3", "--dry-run") for option in ("--worker", "--workers")
    )
    assert one.code == 0 and one.out == other.out
    assert "worker-2" in one.out


@pytest.mark.parametrize(
    ("typed", "meant"), [("pu", "up"), ("run", "up"), ("stpo", "stop"), ("rnder", "render")]
)
def test_a_mistyped_verb_is_answered_with_a_suggestion(typed: str, meant: str, cli: Cli) -> None:
    result = cli(typed)
    assert result.code == 2
    assert f"no such verb: {typed}\n  → did you mean `{meant}`?" in result.err
