"""What was typed for the manifest's keys, as the values that `load` lays over the file."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from cluster_kit.errors import UsageError
from cluster_kit.manifest.overrides import OVERRIDES, Kind
from cluster_kit.programs.catalog import DATA_SETS, PROGRAMS
from cluster_kit.roles import ROLES


def values(typed: Mapping[str, str | None], sets: Iterable[str] = ()) -> dict[str, Any]:
    """The overridden keys and their values, tables within tables.

    Args:
        typed: the text of each option by the manifest's key, None where it was not given.
        sets: the texts of `--set`, each `key=value`.
    Raises:
        UsageError: a text of `--args` or `--set` cannot be read.
    """
    found: dict[str, Any] = {}
    if typed.get("program") is not None:
        # The manifest's arguments, requirements and evaluator belong to the manifest's program.
        found |= {role.name: 0 for role in ROLES.values() if role.sidecar}
        found |= {"args": [], "requirements": ""}
    for override in OVERRIDES:
        text = typed.get(override.key)
        if text is not None:
            # Arguments are added to the manifest's own, every other key is replaced.
            key = "extra_args" if override.kind == "words" else override.key
            found[key] = _VALUES[override.kind](text)
    for text in sets:
        _lay(found, text)
    return found


def _count(text: str) -> int | str:
    """A whole number; any other text stays as it is, and `load` says what is wrong with it."""
    return int(text) if COUNT.fullmatch(text) else text


COUNT = re.compile(r"[+-]?[0-9]{1,18}")
HOLE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
"""A template's hole or tag (see `arguments`)."""
STAND_IN = re.compile("\ue000([0-9]+)\ue001")
"""What replaces a hole while the text is split like a shell does: characters for private use."""


def _split(args: str) -> list[str]:
    """Words as a shell makes them; blanks and quotes inside of `{{ … }}` part nothing."""
    holes: list[str] = []

    def hide(hole: re.Match[str]) -> str:
        holes.append(hole[0])
        return f"\ue000{len(holes) - 1}\ue001"

    try:
        words = shlex.split(HOLE.sub(hide, STAND_IN.sub("", args)))
    except ValueError as error:
        raise UsageError(f"--args {args!r}: {error}", "close the quote") from None
    return [STAND_IN.sub(lambda found: holes[int(found[1])], word) for word in words]


def _gpus(text: str) -> str | list[str]:
    if text in ("none", "auto"):
        return text
    return [part.strip() for part in text.split(",") if part.strip()]


def _from_here(text: str, known: Iterable[str] = ()) -> str:
    """A path on the command line is seen from the current directory, not from the manifest."""
    return text if text in known or not text else str(Path(text).absolute())


def _lay(found: dict[str, Any], text: str) -> None:
    """`a.b=value`, the value in TOML or else taken as a string."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise UsageError(
            f"--set {text!r} is not key=value", "for example `--set deadline.start=30`"
        )
    try:
        parsed = tomllib.loads(f"value = {value}")["value"]
    except (ValueError, RecursionError):
        parsed = value
    *tables, last = key.strip().split(".")
    inner = found
    for table in tables:
        inner = inner.setdefault(table, {})
        if not isinstance(inner, dict):
            raise UsageError(
                f"--set {text!r}: {table} has been given a value already", f"give {table} once"
            )
    inner[last] = parsed


_VALUES: Mapping[Kind, Callable[[str], object]] = {
    "count": _count,
    "text": str,
    "program": lambda text: _from_here(text, PROGRAMS),
    "data": lambda text: _from_here(text, DATA_SETS),
    "file": _from_here,
    "words": _split,
    "gpus": _gpus,
}
