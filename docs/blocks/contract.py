"""Tables made from images/trainer/contract.toml: what host and image agree on."""

from __future__ import annotations

import functools
import tomllib
from pathlib import Path
from typing import Any

from docs.blocks.table import table

CONTRACT = Path(__file__).parents[2] / "images" / "trainer" / "contract.toml"


@functools.cache
def read() -> dict[str, Any]:
    """The contract's tables, as in the file."""
    return tomllib.loads(CONTRACT.read_text(encoding="utf-8"))


def commands() -> str:
    """What a container may be started with."""
    rows = [(f"`{words}`", text) for words, text in read()["commands"].items()]
    return table(("command", "task"), rows)


def variables() -> str:
    """Environment variables that the host sets."""
    return _variables("host")


def own_variables() -> str:
    """Environment variables that the supervisor sets for its program."""
    return _variables("image")


def _variables(set_by: str) -> str:
    rows = [
        (f"`{name}`", entry["meaning"])
        for name, entry in read()["variables"].items()
        if entry["set_by"] == set_by
    ]
    return table(("variable", "meaning"), rows)


def paths() -> str:
    """Directories that a container has."""
    return table(("path", ""), [(f"`{path}`", text) for path, text in read()["paths"].items()])


def times() -> str:
    """Grace times, in seconds."""
    rows = [(f"{entry['seconds']:g} s", entry["meaning"]) for entry in read()["times"].values()]
    return table(("time", "meaning"), rows)


def beacon() -> str:
    """The lines of the beacon."""
    rows = [(f"`{line}`", text) for line, text in read()["beacon"].items()]
    return table(("line", "said by"), rows)


def exit_codes() -> str:
    """A task's exit codes; those with the same number in one row."""
    meanings: dict[int, list[str]] = {}
    for entry in read()["exit_codes"].values():
        meanings.setdefault(entry["code"], []).append(entry["meaning"])
    return table(("code", "meaning"), [(str(c), "; or ".join(t)) for c, t in meanings.items()])


def reasons() -> str:
    """Why a task ended."""
    rows = [
        (f"`{name}`", str(entry.get("exit_code", "the program's")), entry["meaning"])
        for name, entry in read()["reasons"].items()
    ]
    return table(("reason", "exit code", "meaning"), rows)


def events() -> str:
    """The events of a progress file."""
    rows = [
        (f"`{name}`", _keys(entry["keys"]), entry["written_by"])
        for name, entry in read()["events"].items()
    ]
    return table(("event", "further keys", "written by"), rows)


def _keys(keys: dict[str, str]) -> str:
    return ", ".join(f"`{key}`" + (f" ({text})" if text else "") for key, text in keys.items())
