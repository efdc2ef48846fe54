"""Arguments of built-in programs: invalid ones are found before anything starts."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from cluster_kit.cli import up as verbs
from cluster_kit.errors import UsageError
from cluster_kit.platforms.platform import load, plan
from cluster_kit.programs.resolve import resolve
from cluster_kit.run import prepare
from cluster_kit.util.process import Completed
from tests.fakes.hosts import Machine
from tests.fakes.stage import Stage
from tests.make import OWN, ROOT, host
from tests.unit.command_line import Cli

USAGE = "usage: classifier [-h] [--epochs EPOCHS] [--update {async,sync}]\nclassifier: error: "
TOLD = {
    "unrecognized arguments: --epohcs 3": (
        "`--epohcs`: the classifier has no such argument", "did you mean `--epochs`? "
    ),
    "unrecognized arguments: --color=red": ("`--color`: the classifier has no such argument", ""),
    "unrecognized arguments: 12": ("`12`: the classifier has no such argument", ""),
    "argument --epochs: invalid positive value: 'many'": (
        "`many`: no valid value of the classifier's `--epochs`", ""
    ),
    "argument --update: invalid choice: 'x' (choose from 'async', 'sync')": (
        "`x`: no valid value of the classifier's `--update` (choose from 'async', 'sync')", ""
    ),
    "argument --steps/--num-steps: 0: must be 1 or more": (
        "`--steps` of the classifier: 0: must be 1 or more", ""
    ),
    "argument --epochs: expected one argument": (
        "`--epochs` of the classifier: expected one argument", ""
    ),
    "--learning-rates starts at epoch 3: the first must be 0": (
        "arguments of the classifier: --learning-rates starts at epoch 3: the first must be 0", ""
    ),
}  # fmt: skip


@pytest.mark.parametrize("rule", TOLD)
def test_the_invalid_argument_comes_first(rule: str) -> None:
    message, near = TOLD[rule]
    assert prepare.told("classifier", f"{USAGE}{rule}\n") == (
        message, f"{near}`--args --help` lists all of them"
    )  # fmt: skip


class Parser:
    """Replaces the program's own parser, and records the words that it got."""

    def __init__(
        self,
        code: int,
        output: str = "",
        errors: str = "",
        others: Callable[..., Completed] | None = None,
    ) -> None:
        self.asked: list[tuple[str, ...]] = []
        self._others = others
        self._ends = code, output, errors

    def run(self, command: Sequence[str], **options: Any) -> Completed:
        if self._others and "arguments" not in command:
            return self._others(command, **options)
        self.asked.append(tuple(command))
        return Completed(tuple(command), *self._ends)


def test_an_invalid_argument_starts_nothing(stage: Stage, machine: Machine) -> None:
    parser = Parser(2, errors=f"{USAGE}unrecognized arguments: --epohcs 3")
    machine.starts(run=parser.run)
    with pytest.raises(UsageError, match="`--epohcs`: the classifier has no such argument"):
        stage.up(extra_args=["--epohcs", "3"])
    assert parser.asked[0][-5:] == ("trainer", "arguments", "classifier", "--epohcs", "3")
    assert not stage.ran and stage.docker.ups == []


def test_a_users_program_is_not_asked_before_it_runs(stage: Stage, machine: Machine) -> None:
    parser = Parser(2, others=stage.docker.run)
    machine.starts(run=parser.run)
    mine = stage.workspace.root / "train.py"
    mine.write_text("print(1)\n")
    assert stage.up(program=str(mine), extra_args=["--any"]).success
    assert stage.up().success, "nor is one without arguments"
    assert parser.asked == []


@pytest.mark.parametrize("option", ["--help", "-h", "--epochs 3 --help"])
def test_help_is_printed_by_the_program_and_starts_no_cluster(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, option: str, machine: Machine
) -> None:
    parser = Parser(0, "usage: classifier [-h]\n")
    machine.starts(run=parser.run)
    monkeypatch.setattr(verbs, "launch", lambda *_, **__: pytest.fail("a cluster was started"))
    result = cli("up", "demo", f"--args={option}")
    assert (result.code, result.out, result.err) == (0, "usage: classifier [-h]\n", "")


def test_help_of_a_users_program_is_printed_in_its_image(
    cli: Cli, root: Any, monkeypatch: pytest.MonkeyPatch, machine: Machine
) -> None:
    (root / "mine.py").write_text("print(1)\n")
    parser = Parser(0, "usage: \x1b]0;a title\x07mine.py\x1b[2J\n")
    removed: list[Sequence[str]] = []

    @contextlib.contextmanager
    def afterwards(command: Sequence[str]) -> Iterator[None]:
        yield
        removed.append(command)

    machine.starts(run=parser.run, afterwards=afterwards)
    monkeypatch.setattr(verbs, "ensure_image", lambda *_: None)
    (root / "token").write_text("secret")
    (root / "fetch.py").write_text("print()\n")
    more = ("--set=data.fetch=../fetch.py", "--set=secret.token=../token")
    result = cli("up", "demo", "--program=mine.py", "--args=--help", *more)
    assert (result.code, result.out) == (0, "usage: mine.py\n")
    [command] = parser.asked
    assert command[:3] == ("docker", "run", "--rm") and "--network=none" in command
    assert f"--volume={root}:/program:ro" in command
    where = "images/trainer/trainer/agent/injected/for_programs"
    assert f"--env=PYTHONPATH=/opt/{where.partition('/')[2]}" in command and (ROOT / where).is_dir()
    assert command[-2:] == ("/program/mine.py", "--help")
    assert f"--name={removed[0][-1]}" in command, "a program that hears no signal is removed"
    # Data that the first start fetches do not exist yet, and the engine would create a directory.
    assert not [word for word in command if word.endswith((":/data:ro", "token:ro"))]


def test_a_program_without_help_reports_its_exit_code(cli: Cli, machine: Machine) -> None:
    machine.starts(run=Parser(1, errors="KeyError: 'TF_CONFIG'").run)
    result = cli("up", "demo", "--args=--help")
    assert result.code == 2
    assert "classifier --help ended with exit code 1:" in result.err
    assert "KeyError: 'TF_CONFIG'" in result.err


def test_the_parser_gets_the_cluster_that_the_arguments_are_for(
    stage: Stage, machine: Machine
) -> None:
    environments = []

    def run(command: Sequence[str], env: dict[str, str], **_: Any) -> Completed:
        environments.append(env)
        return Completed(tuple(command), 2, "", "error: --save-secs does nothing with …; leave it")

    machine.starts(run=run)
    with pytest.raises(UsageError, match="--save-secs does nothing"):
        stage.up(extra_args=["--save-secs", "3"])
    (environment,) = environments
    assert json.loads(environment["TF_CONFIG"])["task"] == {"type": "chief", "index": 0}
    assert "worker-0" in environment["CLUSTER_KIT_SERVERS"]
    assert not stage.ran and stage.docker.ups == []


OWN_MANIFESTS = [
    path
    for path in sorted((ROOT / "compose").glob("*.toml"))
    if 'program = "classifier"' in path.read_text()
]


@pytest.mark.parametrize("path", OWN_MANIFESTS, ids=lambda path: path.stem)
def test_the_kits_own_manifests_have_no_option_without_effect(path: Path) -> None:
    from docs.blocks import classifier  # adds the image's code to sys.path

    assert classifier.MODES
    from trainer.agent.task import read_task
    from trainer.programs.classifier import option_rules, options

    read = load(path, {"data": "digits"})
    cluster = plan(read, resolve(read.manifest, path.parent), host(), OWN)
    given = options.parse(cluster.leader.command[2:], Path("/data"), Path("/output"))
    option_rules.check(given, read_task(prepare._place(cluster)))
