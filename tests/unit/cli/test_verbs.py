"""A command imports only the module of its verb; help groups the verbs, and imports no such
module."""

from __future__ import annotations

import importlib
import inspect
import logging
from collections.abc import Iterator

import pytest
import typer.main
from typer.core import TyperGroup

from cluster_kit.cli import app
from tests.unit.command_line import Cli


def modules_of(command: object) -> Iterator[str]:
    """Returns the modules of the functions of a command and of its subcommands."""
    if callback := getattr(command, "callback", None):
        yield inspect.unwrap(callback).__module__
    for one in getattr(command, "commands", {}).values():
        yield from modules_of(one)


def test_each_verb_is_in_the_module_of_the_table() -> None:
    app.load_all()
    made = typer.main.get_command(app.app)
    assert isinstance(made, TyperGroup)
    found = {name: set(modules_of(command)) for name, command in made.commands.items()}
    assert found == {name: {f"cluster_kit.cli.{v.module}"} for name, v in app.VERBS.items()}


@pytest.mark.parametrize(
    ("words", "imported"),
    [
        (["up", "smoke"], ["up"]),
        (["--verbose", "up", "smoke"], ["up"]),
        (["status"], ["status"]),
        (["runs", "list"], ["runs"]),
        (["init", "demo"], ["new"]),
        (["pu"], []),
        (["--help"], []),
        (["--version"], []),
        ([], []),
    ],
)
def test_no_other_module_is_imported(
    words: list[str], imported: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(importlib, "import_module", asked.append)
    app.load(words)
    assert asked == [f"cluster_kit.cli.{module}" for module in imported]


def test_help_has_groups_by_purpose_and_lists_no_synonyms(cli: Cli) -> None:
    output = cli("--help").out
    groups = [output.index(f"─ {group} ─") for group in app.GROUPS]
    assert next(iter(app.GROUPS)) == "Run" and groups == sorted(groups)
    listed = [line.split()[1] for line in output.splitlines() if line.startswith("│ ")]
    named = [word for word in listed if word in app.VERBS]
    assert named == [verb.name for verb in app.VERBS.values() if not verb.hidden]
    assert {"ps", "init"}.isdisjoint(named)
    assert all(cli(twin, "--help").code == 0 for twin in ("ps", "init"))


@pytest.mark.parametrize(
    "words", [("--verbose", "schema"), ("schema", "-v"), ("runs", "list", "-v")]
)
def test_verbose_is_accepted_before_and_after_a_verb(words: tuple[str, ...], cli: Cli) -> None:
    assert not logging.getLogger("cluster_kit.docker").isEnabledFor(logging.DEBUG)
    assert cli(*words).code == 0
    assert logging.getLogger("cluster_kit.docker").isEnabledFor(logging.DEBUG)


@pytest.mark.parametrize(
    ("words", "wrong", "meant"),
    [
        (("up", "--wrokers", "3"), "option: --wrokers", "--workers"),
        (("up", "-d"), "option: -d", "--detach"),
        (("--verion",), "option: --verion", "--version"),
        (("runs", "lst"), "verb: lst", "list"),
        (("image", "build", "--quit"), "option: --quit", "--quiet"),
        (("stauts",), "verb: stauts", "status"),
        (("stat",), "verb: stat", "status"),
        (("kill", "demo"), "verb: kill", "down"),
        (("rm", "demo"), "verb: rm", "down"),
        (("runs", "rm", "demo"), "verb: rm", "prune"),
    ],
)
def test_a_mistyped_verb_or_option_is_answered_with_the_nearest(
    words: tuple[str, ...], wrong: str, meant: str, cli: Cli
) -> None:
    result = cli(*words)
    assert result.code == 2
    assert f"error: no such {wrong}\n  → did you mean `{meant}`?" in result.err


def test_a_status_that_is_to_repeat_itself_is_not_sent_to_runs_that_do(cli: Cli) -> None:
    for option in ("--watch", "-w"):
        err = cli("status", option).err
        assert "→ `watch cluster-kit status` repeats it" in err and "up` has" not in err


@pytest.mark.parametrize("option", ["--steps", "--learning-rate", "--batch"])
def test_an_option_of_the_program_is_told_to_be_one_of_args(option: str, cli: Cli) -> None:
    result = cli("up", option, "5")
    assert f"`--args '{option} …'`" in result.err and "did you mean" not in result.err


def test_the_programs_options_are_no_answer_to_a_missing_one(cli: Cli) -> None:
    missing = cli("image", "push").err
    assert "missing option '--to'" in missing and "--args" not in missing


@pytest.mark.parametrize(
    ("option", "key"),
    [
        ("--memory", "role.worker.memory"),
        ("--cpus", "role.worker.cpus"),
        ("--env", "role.worker.environment.NAME"),
        ("--ports", "role.worker.ports"),
        ("--port", "port"),
        ("--retry", "retries"),
        ("--deadline", "deadline.job"),
        ("--timeout", "deadline.job"),
        ("--network", "network.KEY"),
    ],
)
def test_an_option_with_the_name_of_a_key_leads_to_that_key(
    option: str, key: str, cli: Cli
) -> None:
    """Not to an option or a key that is only like it, as `--gpus` or `gpu_memory`."""
    assert f"→ `--set {key}=…` sets a key of the manifest; " in cli("up", option, "5").err
