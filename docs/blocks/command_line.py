"""The tables of commands and overrides, from the command line's and the Makefile's own words."""

from __future__ import annotations

import functools
import importlib
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import typer
from typer.core import TyperArgument, TyperGroup, TyperOption

from cluster_kit import cli
from cluster_kit.cli.app import app
from cluster_kit.manifest.command_line import OVERRIDES, SET_OPTION, SET_VARIABLE
from cluster_kit.util.paths import FILES
from docs.blocks.table import table

TARGET = re.compile(r"^([a-z][a-z-]*):.*\n((?:[\t#].*\n)+)", re.MULTILINE)
VERB = re.compile(r"\$\(KIT\) ((?:image )?[a-z]+)")
OF_ALL = ("--verbose",)
"""Options of every verb, of which the page tells once."""
OVERRIDING = {SET_OPTION, *(override.option for override in OVERRIDES)}


def verbs() -> str:
    """Every command: its words, the target of make that calls it, what it does, its options."""
    targets = made_by()
    order = list(targets)
    rows = [
        (
            f"`{usage(words, command)}`",
            f"`make {targets[words]}`" if words in targets else "",
            str(command.help).partition("\n")[0],
            ", ".join(options(command)),
        )
        for words, command in sorted(
            commands(application()), key=lambda found: place(found[0], order)
        )
    ]
    return table(("cluster-kit", "make", "what it does", "options"), rows)


def place(words: str, order: list[str]) -> tuple[int, str]:
    """As in the Makefile; what has no target there comes after its neighbour of the same group."""
    known = [i for i, verb in enumerate(order) if verb.split()[0] == words.split()[0]]
    return (known[0] if known else len(order)), words


@functools.cache
def application() -> Any:
    """The whole command line: its modules enter their verbs when they are imported."""
    for module in pkgutil.iter_modules(cli.__path__):
        importlib.import_module(f"{cli.__name__}.{module.name}")
    return typer.main.get_command(app)


def commands(group: Any, above: str = "") -> Iterator[tuple[str, Any]]:
    """Words and command of each verb; `image build` is two words."""
    if not isinstance(group, TyperGroup):
        yield above, group
        return
    for name, command in sorted(group.commands.items()):
        yield from commands(command, f"{above} {name}".strip())


def made_by() -> dict[str, str]:
    """The Makefile's target by the verb that its recipe calls, in the Makefile's order."""
    found: dict[str, str] = {}
    for target, recipe in TARGET.findall((FILES / "Makefile").read_text(encoding="utf-8")):
        for verb in VERB.findall(recipe)[:1]:
            if verb not in found or target == verb:
                found[verb] = target
    return found


def usage(words: str, command: Any) -> str:
    arguments = [p for p in command.params if isinstance(p, TyperArgument)]
    names = [str(p.name).upper() + ("…" if p.nargs != 1 else "") for p in arguments]
    shown = [name if p.required else f"[{name}]" for name, p in zip(names, arguments, strict=True)]
    return " ".join([words, *shown])


def options(command: Any) -> list[str]:
    given = [p.opts[0] for p in command.params if isinstance(p, TyperOption)]
    given = [option for option in given if option not in OF_ALL]
    overriding = SET_OPTION in given
    own = [f"`{o}`" for o in given if not (overriding and o in OVERRIDING)]
    return ["[overrides](#overrides)", *own] if overriding else own


def overrides() -> str:
    """The option and the variable of make's for each key that has one."""
    rows = [(f"`{o.key}`", f"`{o.option}`", f"`{o.variable}`") for o in OVERRIDES]
    rows.append(("any other", f"`{SET_OPTION} key=value`", f'`{SET_VARIABLE}="key=value …"`'))
    return table(("key of the manifest", "option", "Make variable"), rows)
