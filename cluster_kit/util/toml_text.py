"""Values, keys and tables as TOML text. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

DEEPEST = 3
"""A manifest has three levels; deeper ones are not shown."""
_ANY_DEPTH = 100
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def to_toml(value: object, depth: int = DEEPEST) -> str:
    """The value in TOML: `"text"`, `[1, 2]`, `{cpus = 1}`; levels beyond `depth` as `…`."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple | dict) and value and not depth:
        return "{…}" if isinstance(value, dict) else "[…]"
    if isinstance(value, list | tuple):
        return f"[{', '.join(to_toml(inner, depth - 1) for inner in value)}]"
    if isinstance(value, dict):
        pairs = (f"{dotted([str(key)])} = {to_toml(v, depth - 1)}" for key, v in value.items())
        return f"{{{', '.join(pairs)}}}"
    try:
        return str(value)
    except ValueError:
        return "a very long number"


def document(table: Mapping[str, Any], name: tuple[str, ...] = ()) -> str:
    """The tables as a TOML file: a table's values first, then each inner table below its name."""
    inner = {key: value for key, value in table.items() if isinstance(value, dict)}
    lines = [
        f"{dotted([key])} = {to_toml(value, _ANY_DEPTH)}\n"
        for key, value in table.items()
        if key not in inner
    ]
    if name and (lines or not inner):
        lines.insert(0, f"\n[{dotted(name)}]\n")
    return "".join([*lines, *(document(value, (*name, key)) for key, value in inner.items())])


def dotted(parts: Sequence[str]) -> str:
    """The dotted key of these parts; a part that TOML would quote is quoted."""
    return ".".join(part if _BARE_KEY.fullmatch(part) else to_toml(part) for part in parts)
