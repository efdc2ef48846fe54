"""Writes plain data as YAML that is read back exactly; Compose interpolates `$`. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_WORDS = frozenset(("null", "true", "false", "yes", "no", "on", "off", "y", "n"))
"""Unquoted words, in any case, that YAML does not read as text."""
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
"""What is no number, date or mark of YAML's; label keys have dots and slashes."""


class Verbatim(str):
    """What is YAML already: a word of the file's format, an alias, a variable of Compose's."""

    __slots__ = ()


@dataclass(frozen=True)
class OneLine:
    """A mapping that is written on one line."""

    data: Mapping[str, Any]


@dataclass(frozen=True)
class Anchored:
    """A mapping to which other places of the file refer by `*name`."""

    name: str
    data: Mapping[str, Any]


def quote(text: str) -> str:
    """Returns a quoted scalar on one line that Compose reads back as exactly this text."""
    return scalar(text.replace("$", "$$"))


def scalar(text: str) -> str:
    """Returns a quoted scalar on one line that YAML reads as exactly this text."""
    if text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    return '"' + "".join(map(_escape, text)) + '"'


Quote = Callable[[str], str]


def block(data: Mapping[str, Any], indent: int = 0, quote: Quote = quote) -> str:
    """Returns a mapping's lines, each below the other, without a line break at the end.

    Values are texts, which are quoted, numbers, booleans, None for a key without a value,
    mappings, sequences, `Verbatim`, `OneLine` or `Anchored`. Templates use it as the filter `yaml`.

    Args:
        quote: `scalar` for a file that Compose does not read.
    """
    return "\n".join(_lines(data, " " * indent, quote))


def _lines(data: Mapping[str, Any], margin: str, quote: Quote) -> Iterator[str]:
    for name, value in data.items():
        head = f"{margin}{name if isinstance(name, Verbatim) else key(name, quote)}:"
        if isinstance(value, Anchored):
            head, value = f"{head} &{value.name}", value.data
        if isinstance(value, Mapping) and value:
            yield head
            yield from _lines(value, f"{margin}  ", quote)
        elif _is_block(value):
            yield head
            yield from _items(value, f"{margin}  ", quote)
        elif value is None:
            yield head
        else:
            yield f"{head} {inline(value, quote)}"


def _items(items: Sequence[Mapping[str, Any]], margin: str, quote: Quote) -> Iterator[str]:
    for item in items:
        first, *others = [*_lines(item, f"{margin}  ", quote)] or ["{}"]
        yield f"{margin}- {first.lstrip()}"
        yield from others


def _is_block(value: object) -> bool:
    """Whether it is a list of mappings."""
    return isinstance(value, list | tuple) and any(isinstance(item, Mapping) for item in value)


def inline(value: object, quote: Quote = quote) -> str:
    """Returns a value on one line."""
    match value:
        case Verbatim():
            return str(value)
        case str():
            return quote(value)
        case bool():
            return "true" if value else "false"
        case OneLine(data):
            pairs = (f"{key(k, quote)}: {inline(inner, quote)}" for k, inner in data.items())
            return "{" + ", ".join(pairs) + "}"
        case list() | tuple():
            return "[" + ", ".join(inline(item, quote) for item in value) + "]"
        case Mapping():
            return "{}"
        case _:
            return str(value)


def present(data: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the keys that have a value: neither None nor a text, list or mapping without any."""
    return {name: value for name, value in data.items() if value not in (None, "", (), [], {})}


def key(name: str, quote: Quote = quote) -> str:
    """Returns a key, or another short text: as it is if YAML reads it as text, else quoted."""
    return name if _PLAIN.fullmatch(name) and name.lower() not in _WORDS else quote(name)


def comment(text: str) -> str:
    """Returns the text without line breaks, which a file's name may have."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _escape(character: str) -> str:
    """A character inside YAML's double quotes; JSON's escapes would split `😀` in two."""
    if character in _SHORT:
        return _SHORT[character]
    return character if character.isprintable() else f"\\U{ord(character):08x}"
