"""A command imports the module of its verb only."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator

import pytest
import typer.main
from typer.core import TyperGroup

from cluster_kit.cli import verbs
from cluster_kit.cli.app import app


def modules_of(command: object) -> Iterator[str]:
    """Where the functions of a command, and of those below it, are written."""
    if callback := getattr(command, "callback", None):
        yield inspect.unwrap(callback).__module__
    for one in getattr(command, "commands", {}).values():
        yield from modules_of(one)


def test_each_verb_is_in_the_module_that_is_named() -> None:
    verbs.load(())
    made = typer.main.get_command(app)
    assert isinstance(made, TyperGroup)
    found = {name: set(modules_of(command)) for name, command in made.commands.items()}
    told = {verb: {f"cluster_kit.cli.{m}"} for m, all_ in verbs.VERBS.items() for verb in all_}
    assert found == told


@pytest.mark.parametrize(
    ("words", "imported"),
    [
        (["up", "smoke"], ["run"]),
        (["status"], ["look"]),
        (["runs", "list"], ["runs"]),
        (["init", "demo"], ["new"]),
        (["pu"], list(verbs.VERBS)),
        (["--help"], list(verbs.VERBS)),
        (["--version"], []),
        ([], list(verbs.VERBS)),
    ],
)
def test_no_other_module_is_imported(
    words: list[str], imported: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(importlib, "import_module", asked.append)
    verbs.load(words)
    assert asked == [f"cluster_kit.cli.{module}" for module in imported]
