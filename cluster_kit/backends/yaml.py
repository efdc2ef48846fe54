"""Writes texts as YAML that Compose reads back exactly: Compose interpolates `$`. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cluster_kit.cluster import LOOPBACK
from cluster_kit.parts import Mount, Port

_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_WORDS = frozenset(("null", "true", "false", "yes", "no", "on", "off", "y", "n"))
"""Unquoted words, in any case, that YAML does not read as text."""
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
"""What is no number, date or mark of YAML's; label keys have dots and slashes."""


@dataclass(frozen=True)
class Pair:
    """A key and its value as YAML text."""

    name: str
    value: str


@dataclass(frozen=True)
class Volume:
    """A bind mount's values as YAML text."""

    source: str
    target: str
    read_only: str


def quote(text: str) -> str:
    """Returns a quoted scalar on one line that Compose reads back as exactly this text."""
    return scalar(text.replace("$", "$$"))


def scalar(text: str) -> str:
    """Returns a quoted scalar on one line that YAML reads as exactly this text."""
    if text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    return '"' + "".join(map(_escape, text)) + '"'


def flow(texts: Iterable[str]) -> str:
    """Returns a list of texts on one line."""
    return "[" + ", ".join(map(quote, texts)) + "]"


def pairs(texts: Mapping[str, str]) -> tuple[Pair, ...]:
    """Returns variables, labels or limits as keys and quoted scalars."""
    return tuple(Pair(key(name), quote(text)) for name, text in texts.items())


def key(name: str) -> str:
    """Returns a key, or another short text: as it is if YAML reads it as text, else quoted."""
    return name if _PLAIN.fullmatch(name) and name.lower() not in _WORDS else quote(name)


def volumes(mounts: Iterable[Mount]) -> tuple[Volume, ...]:
    """Returns bind mounts' values."""
    return tuple(
        Volume(quote(mount.source), quote(mount.target), boolean(mount.read_only))
        for mount in mounts
    )


def published(ports: Iterable[Port]) -> str:
    """Returns a list of ports, published on LOOPBACK only; "" if there are none."""
    texts = [f"{LOOPBACK}:{port.host}:{port.container}" for port in ports]
    return flow(texts) if texts else ""


def boolean(value: bool) -> str:
    """Returns YAML's word for it."""
    return "true" if value else "false"


def comment(text: str) -> str:
    """Returns the text without line breaks, which a file's name may have."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _escape(character: str) -> str:
    """A character inside YAML's double quotes; JSON's escapes would split `😀` in two."""
    if character in _SHORT:
        return _SHORT[character]
    return character if character.isprintable() else f"\\U{ord(character):08x}"
