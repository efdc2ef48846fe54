"""Tables made from the contract: what host and image agree on."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import ModuleType

from cluster_kit.contract import endings, events, interface, times
from docs.blocks.table import table


def commands() -> str:
    """What a container may be started with."""
    rows = [(f"`{words}`", text) for words, text in interface.COMMANDS.items()]
    return table(("command", "task"), rows)


def variables() -> str:
    """Environment variables that the host sets."""
    return _variables(of_image=False)


def own_variables() -> str:
    """Environment variables that the supervisor sets for its program."""
    return _variables(of_image=True)


def _variables(*, of_image: bool) -> str:
    rows = [
        (f"`{name}`", variable.meaning)
        for name, variable in interface.VARIABLES.items()
        if variable.of_image == of_image
    ]
    return table(("variable", "meaning"), rows)


def paths() -> str:
    """Directories that a container has."""
    return table(("path", ""), [(f"`{path}`", text) for path, text in interface.PATHS.items()])


def beacon() -> str:
    """The lines of the beacon."""
    rows = [(f"`{line}`", text) for line, text in interface.BEACON.items()]
    return table(("line", "sent by"), rows)


def grace_times() -> str:
    """Grace times, in seconds."""
    rows = [
        (f"{getattr(times, name):g} s", meaning)
        for name, meaning in documented(times)
        if name.endswith("_S")
    ]
    return table(("time", "meaning"), rows)


def exit_codes() -> str:
    """A task's exit codes; those with the same number in one row."""
    meanings: dict[int, list[str]] = {}
    for name, meaning in documented(endings):
        if name.startswith("EXIT_"):
            meanings.setdefault(getattr(endings, name), []).append(meaning)
    return table(("code", "meaning"), [(str(c), "; or ".join(t)) for c, t in meanings.items()])


def documented(module: ModuleType) -> Iterator[tuple[str, str]]:
    """Yields each constant of a module that has a docstring, with that."""
    body = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8")).body
    for line, after in pairwise(body):
        match line, after:
            case ast.Assign(targets=[ast.Name(id=name)]), ast.Expr(ast.Constant(str() as text)):
                yield name, text


def reasons() -> str:
    """Why a task ended."""
    rows = [
        (f"`{name}`", "the program's" if r.exit_code is None else str(r.exit_code), r.meaning)
        for name, r in endings.REASONS.items()
    ]
    return table(("reason", "exit code", "meaning"), rows)


def progress_events() -> str:
    """The events of a progress file."""
    rows = [(f"`{name}`", _keys(event), written_by(event)) for name, event in events.EVENTS.items()]
    return table(("event", "further keys", "written by"), rows)


def _keys(event: type[events.Event]) -> str:
    found = ((one.name, one.metadata["meaning"]) for one in events.keys_of(event))
    return ", ".join(f"`{key}`" + (f" ({text})" if text else "") for key, text in found)


def written_by(event: type[events.Event]) -> str:
    """Who writes an event, and when."""
    return " ".join((event.__doc__ or "").split()).removeprefix("Written by ").removesuffix(".")
