"""From the text of options to the overridden values of the manifest's keys."""

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


def values(texts: Mapping[str, str | None], sets: Iterable[str] = ()) -> dict[str, Any]:
    """The overridden keys and their values, as nested tables.

    Args:
        texts: the text of each option by the manifest's key, None if it was not given.
        sets: the texts of `--set`, each `key=value`.
    Raises:
        UsageError: a text of `--args` or `--set` is invalid.
    """
    overridden: dict[str, Any] = {}
    if texts.get("program") is not None:
        # The manifest's arguments and what else is for its own program go with that.
        overridden |= {role.name: 0 for role in ROLES.values() if role.sidecar}
        overridden |= {"args": [], "requirements": "", "tf1": False}
    for override in OVERRIDES:
        text = texts.get(override.key)
        if text is not None:
            # Arguments are added to the manifest's own, every other key is replaced.
            key = "extra_args" if override.kind == "words" else override.key
            overridden[key] = _VALUES[override.kind](text)
    for text in sets:
        _set(overridden, text)
    return overridden


def keys_of(sets: Iterable[str]) -> frozenset[str]:
    """The keys that the texts of `--set` give."""
    return frozenset(text.partition("=")[0].strip() for text in sets)


def _count(text: str) -> int | str:
    """A whole number; any other text stays as it is, and `load` reports it as invalid."""
    return int(text) if COUNT.fullmatch(text) else text


COUNT = re.compile(r"[+-]?[0-9]{1,18}")
HOLE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
"""A template's `{{ … }}` or `{% … %}` (see `arguments`)."""
STAND_IN = re.compile("\ue000([0-9]+)\ue001")
"""Replaces a hole while the text is split as a shell would; of private-use characters."""


def _split(args: str) -> list[str]:
    """The words of a text as a shell splits it, except inside `{{ … }}`; raises UsageError."""
    holes: list[str] = []

    def hide(hole: re.Match[str]) -> str:
        holes.append(hole[0])
        return f"\ue000{len(holes) - 1}\ue001"

    try:
        words = shlex.split(HOLE.sub(hide, STAND_IN.sub("", args)))
    except ValueError as error:
        raise UsageError(f"--args {args!r}: {error}", "close the quote") from None
    return [STAND_IN.sub(lambda match: holes[int(match[1])], word) for word in words]


def _gpus(text: str) -> str | list[str]:
    if text in ("none", "auto", "require"):
        return text
    return [part.strip() for part in text.split(",") if part.strip()]


def _from_here(text: str, known: Iterable[str] = ()) -> str:
    """The absolute path: on the command line it is relative to the current directory.

    A `~` that the shell has left, since it was quoted, is the home directory. A known name and ""
    stay as they are.
    """
    if text in known or not text:
        return text
    try:
        return str(Path(text).expanduser().absolute())
    except RuntimeError:  # a user that does not exist: no such file
        return str(Path(text).absolute())


def _set(overridden: dict[str, Any], text: str) -> None:
    """Set the key of `a.b=value` in nested tables; a value that is not TOML is a string."""
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
    inner = overridden
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
    "switch": lambda _: True,
}
