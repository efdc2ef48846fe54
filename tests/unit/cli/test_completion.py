"""Completion by Tab is fast, prints only words, and prints nothing if anything fails."""

from __future__ import annotations

import ast
import json
import sys
import threading
import time
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path

import pytest
import typer
import typer.rich_utils
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cluster_kit.cli import app, completion
from cluster_kit.errors import HostError
from cluster_kit.platforms.engine import ContainerSummary
from cluster_kit.workspace import new_run
from docs import completion_table
from tests.fakes.hosts import Machine
from tests.sources import tree_of
from tests.unit.command_line import Cli

Tab = Callable[[str], list[str]]


@pytest.fixture
def tab(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Tab:
    """Returns the words that a shell gets for the end of a line after Tab."""

    def press(line: str) -> list[str]:
        words = f"cluster-kit {line}".split(" ")
        monkeypatch.setenv("_CLUSTER_KIT_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", " ".join(words))
        monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
        result = cli()
        assert (result.code, result.err) == (0, "")
        return result.out.split()

    return press


class Engine:
    """Two clusters, one of which runs in another directory."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def glance(self) -> list[ContainerSummary]:
        here, there = str(self.root / "runs" / "demo" / "1" / "output"), "/else/runs/other/1/output"
        return [
            ContainerSummary("1", "demo", "", "chief-0", "chief", "running", here),
            ContainerSummary("2", "demo", "", "ps-0", "ps", "running", here),
            ContainerSummary("3", "other", "", "worker-7", "worker", "running", there),
        ]

    def close(self) -> None:
        print("a library prints as it closes")


def test_manifests_and_verbs(tab: Tab) -> None:
    assert tab("up dem") == ["demo"]
    assert {"demo", "quickstart"} <= set(tab("render "))
    assert tab("stac") == ["stacks"]
    assert tab("no-such-verb x") == []


def test_keys_and_values_of_set(tab: Tab) -> None:
    keys = tab("up demo --set dead")
    assert {"deadline.start=", "deadline.job="} <= set(keys)
    assert all(key.startswith("deadline.") for key in keys)
    assert "role.ps.bandwidth=" in tab("render demo --set role.ps.")
    assert "task=" not in tab("render demo --set "), "its keys begin with a task's name"
    # A shell writes a space after a single word: a key is never alone if it has a known value.
    assert tab("up demo --set succ") == ["success=", "success=leader", "success=all"]
    assert tab("up demo --set deadline.sta") == ["deadline.start=", "deadline.stall="]
    assert tab("up demo --set deadline.start") == ["deadline.start=", "deadline.start=120"]
    assert tab("up demo --set no-such") == []
    # As zsh, fish and PowerShell have it, and as bash, which makes a word of `=`.
    assert tab("up demo --set success=l") == ["success=leader"]
    assert tab("up demo --set success =") == ["leader", "all"]
    assert tab("up demo --set success = a") == ["all"]
    assert tab("up demo --set tf1 =") == ["true", "false"]
    assert tab("up demo --set success = ") == tab("up demo ")
    assert tab("up demo --set=succ") == tab("up demo --set = succ") == tab("up demo --set succ")


def test_the_words_that_an_option_allows(tab: Tab) -> None:
    assert tab("up demo --style ") == ["auto", "coordinator", "all-tasks"]
    assert tab("up demo --engine s") == ["swarm", "slurm"]
    assert tab("up demo --gpus=n") == ["none"]
    assert tab("new mine --ci g") == ["github", "gitlab"]
    assert tab("predict --way r") == ["ring"]


def test_clusters_that_are_up_and_their_tasks(tab: Tab, root: Path, machine: Machine) -> None:
    machine.connects(lambda: Engine(root))
    assert tab("attach ") == ["demo", "other"]
    assert tab("exec --name o") == ["other"]
    assert tab("exec ") == ["chief-0", "ps-0"], "of this directory's cluster"
    assert tab("exec --name other ") == ["worker-7"]
    assert tab("logs other w") == ["worker-7"]
    for verb in ("logs", "stacks", "profile"):
        assert tab(f"{verb} demo chief-0 p") == ["ps-0"]


def test_runs(tab: Tab, root: Path) -> None:
    run = new_run(root / "runs" / "demo", datetime(2026, 11, 22, 11))
    assert run.output.is_dir()
    assert tab("report d") == ["demo", "demo/20261122-110000"]
    assert tab("runs diff demo demo/") == ["demo/20261122-110000"]


def test_nothing_is_printed_if_the_engine_fails(tab: Tab, machine: Machine) -> None:
    def fails() -> None:
        print("warning", file=sys.stderr)
        raise HostError("no Docker engine answers", "start it")

    machine.connects(fails)
    assert tab("attach ") == tab("exec ") == []


def test_completion_does_not_wait_for_a_hanging_engine(
    tab: Tab, monkeypatch: pytest.MonkeyPatch, machine: Machine
) -> None:
    over = threading.Event()
    machine.connects(over.wait)
    monkeypatch.setattr(completion, "WITHIN_S", 0.1)
    began = time.monotonic()
    try:
        assert tab("attach ") == []
        assert time.monotonic() - began < 20
    finally:
        over.set()


REPOSITORY = Path(__file__).parents[3]
SHELLS = ("bash", "zsh", "fish", "powershell")


class Shell:
    """Presses Tab at the end of a line, by the kit and by typer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
        self._patch, self._output = monkeypatch, capfd
        self._command = typer.main.get_command(app.app)

    def press(self, line: str, shell: str) -> None:
        words = f"cluster-kit {line}".split(" ")
        self._patch.setenv("COMP_WORDS", "\n".join(words))
        self._patch.setenv("COMP_CWORD", str(len(words) - 1))
        self._patch.setenv("_TYPER_COMPLETE_ARGS", f"cluster-kit {line}")
        self._patch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
        self._patch.setenv("_TYPER_COMPLETE_WORD_TO_COMPLETE", words[-1])
        self._patch.setenv("_CLUSTER_KIT_COMPLETE", f"complete_{shell}")

    def by_kit(self) -> str:
        assert completion.answer(completion.asked()) == 0
        return self._output.readouterr().out

    def by_typer(self) -> str:
        with pytest.raises(SystemExit):
            self._command.main(args=[], prog_name="cluster-kit")
        return self._output.readouterr().out

    def differences(self, lines: Iterable[str]) -> list[tuple[str, str, str]]:
        """The lines to which kit and typer give different words, with both."""
        pairs = []
        for line in lines:
            self.press(line, "bash")
            pairs.append((line, self.by_kit(), self.by_typer()))
        return [(line, ours, theirs) for line, ours, theirs in pairs if ours != theirs]


@pytest.fixture
def shell(root: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Shell:
    # typer breaks help at the width of a terminal: in fish, the rest is a further word.
    monkeypatch.setattr(typer.rich_utils, "MAX_WIDTH", 1000)
    monkeypatch.setattr(completion, "_WORDS", {kind: _words_of(kind) for kind in completion.KINDS})
    return Shell(monkeypatch, capfd)


def _words_of(kind: str) -> Callable[[str | None], list[str]]:
    return lambda name: [f"{kind}-of-{name or 'all'}", f"{kind}-2"]


LINES = (
    "", "u", "-", "--ver", "-v ", "--verbose up ", "no-such-verb x", "no-such u", "-- u", "'u", "=",
    "--bogus up ", "--verbose=1 up ", "-x up ", "up 'qu", "up --keep no x ", "up --keep x ",
    "up --keep --ready x ", "up --set a=1 --se", "up --name=", "up --engine = ", "up --json --js",
    "runs l", "runs --json --", "runs diff ", "image b", "serve -- -", "doctor x ", "-- status -",
)  # fmt: skip
VERBS = ("up", "exec", "logs", "runs diff", "status", "report")
ENDS = (
    "", "-", "x ", "x y ", "x -", "-x ", "-- ", "-- -", "-vx ", "-v= ", "--bogus ", "--name a ",
    "--name=a x ", "demo chief-0 ", "chief-0 --name a w", "--json --json ", "--json=1 x ", "m", "t",
    "x --name a --",
)  # fmt: skip
WORDS = [
    *VERBS, "runs", "image", "demo", "chief-0", "x", "", "-", "--", "=", "-v", "-vx", "-f", "-fv",
    "--name", "--name=a", "--json", "--json=1", "--keep", "no", "--engine", "swarm", "--bogus",
    "--follow", "--set", "a=1", "--la", "'a",
]  # fmt: skip


def test_a_line_is_completed_as_by_typer(shell: Shell) -> None:
    lines = [*LINES, *(f"{verb} {end}" for verb in VERBS for end in ENDS)]
    assert shell.differences(lines) == []


@given(lines=st.lists(st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join), max_size=1))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_any_line_is_completed_as_by_typer(shell: Shell, lines: list[str]) -> None:
    assert shell.differences(lines) == []


def test_every_option_is_completed_as_by_typer(shell: Shell) -> None:
    """With one line for each verb, which lists its options, and one for each option's values."""
    todo = dict(json.loads(completion.TABLE.read_text())["commands"])
    lines = []
    while todo:
        name, verb = todo.popitem()
        todo |= {f"{name} {inner}": one for inner, one in verb.get("commands", {}).items()}
        with_values = [one for one in verb["parameters"] if {"options", "values"} <= set(one)]
        options = [
            one["options"][0] for one in with_values if one["values"] != completion.SETTINGS
        ]  # typer proposes nothing for keys of the manifest
        lines += [f"{name} -", f"{name} ", *(f"{name} {option} " for option in options)]
    assert len(lines) > 100
    assert shell.differences(lines) == []


def test_every_shell_gets_what_typer_prints(shell: Shell) -> None:
    for line in ("", "no-such-verb x", "up --", "image ", "up --engine ", "runs d", "logs demo x"):
        for name in SHELLS:
            shell.press(line, name)
            assert shell.by_kit() == shell.by_typer(), (line, name)


def test_fish_asks_whether_there_are_words(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    for line, code in (("u", 0), ("no-such-verb x", 1)):
        shell.press(line, "fish")
        monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "is-args")
        assert completion.answer("fish") == code


def test_the_table_is_that_of_the_commands() -> None:
    (text,) = completion_table.texts().values()
    assert completion.TABLE.read_text() == text, "run `make docs`"


def test_nothing_heavy_is_imported() -> None:
    """Tab may take 0.15 s: the import of typer alone takes longer than all that it needs."""
    todo = ["__main__", "cli.completion", "run.history", "run.find", "this_host"]
    todo = [f"cluster_kit.{name}" for name in [*todo, "platforms.docker.docker_socket"]]
    imported: set[str] = set()
    while todo:
        name = todo.pop()
        if name not in imported:
            imported.add(name)
            todo += _imported_at_once(name)
    assert "cluster_kit.util.process" in imported
    heavy = {"typer", "rich", "docker", "pydantic", "jinja2", "urllib3", "http"}
    assert {name for name in imported if name.partition(".")[0] in heavy} == set()


def _imported_at_once(module: str) -> list[str]:
    """What a module of the kit imports as it is imported, not in a function."""
    path = Path(module.replace(".", "/"))
    file = REPOSITORY / (path / "__init__.py" if (REPOSITORY / path).is_dir() else f"{path}.py")
    if not file.is_file():
        return []
    names = []
    for node in tree_of(file).body:
        if isinstance(node, ast.Import):
            names += [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{one.name}" for one in node.names)]
    return names
