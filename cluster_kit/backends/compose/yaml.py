"""Writes texts as YAML that Compose reads back exactly: Compose interpolates `$`. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_WORDS = frozenset(("null", "true", "false", "yes", "no", "on", "off", "y", "n"))
"""Unquoted words, in any case, that YAML does not read as text."""


@dataclass(frozen=True)
class Pair:
    """A key and its value as YAML text."""

    name: str
    value: str


def quote(text: str) -> str:
    """Returns a quoted scalar on one line that Compose reads back as exactly this text."""
    escaped = text.replace("$", "$$")
    if escaped.isprintable():
        return "'" + escaped.replace("'", "''") + "'"
    return '"' + "".join(map(_escape, escaped)) + '"'


def flow(texts: Iterable[str]) -> str:
    """Returns a list of texts on one line."""
    return "[" + ", ".join(map(quote, texts)) + "]"


def pairs(texts: Mapping[str, str]) -> tuple[Pair, ...]:
    """Returns variables, labels or limits as keys and quoted scalars."""
    return tuple(Pair(_key(name), quote(text)) for name, text in texts.items())


def _key(name: str) -> str:
    return quote(name) if name.lower() in _WORDS else name


def comment(text: str) -> str:
    """Returns the text without line breaks, which a file's name may have."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _escape(character: str) -> str:
    """A character inside YAML's double quotes; JSON's escapes would split `😀` in two."""
    if character in _SHORT:
        return _SHORT[character]
    return character if character.isprintable() else f"\\U{ord(character):08x}"
