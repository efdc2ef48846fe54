"""Texts as YAML that Compose reads back exactly: it interpolates `$`. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_WORDS = frozenset(("null", "true", "false", "yes", "no", "on", "off", "y", "n"))
"""What YAML does not read as a text if it stands without quotes, in any case."""


@dataclass(frozen=True)
class Pair:
    """A key and its value, ready as YAML."""

    name: str
    value: str


def quote(text: str) -> str:
    """Returns a scalar of one line that Compose reads back as exactly this text."""
    escaped = text.replace("$", "$$")
    if escaped.isprintable():
        return "'" + escaped.replace("'", "''") + "'"
    return '"' + "".join(map(_escape, escaped)) + '"'


def flow(texts: Iterable[str]) -> str:
    """Returns a list of texts on one line."""
    return "[" + ", ".join(map(quote, texts)) + "]"


def pairs(texts: Mapping[str, str]) -> tuple[Pair, ...]:
    """Returns names of variables, labels or limits with their values, as keys and scalars."""
    return tuple(Pair(_key(name), quote(text)) for name, text in texts.items())


def _key(name: str) -> str:
    return quote(name) if name.lower() in _WORDS else name


def comment(text: str) -> str:
    """Returns a text that stays on its line; a file's name may hold a line break."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _escape(character: str) -> str:
    """In YAML's double quotes. JSON's escapes do not do: they write `😀` as two halves."""
    if character in _SHORT:
        return _SHORT[character]
    return character if character.isprintable() else f"\\U{ord(character):08x}"
