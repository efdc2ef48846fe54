"""A program's text, as this host's own Python reads it."""

from __future__ import annotations

import ast
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

OLDEST = (3, 11)
"""The Python of the default base image, and the oldest that this package runs on."""
MOST_BYTES = 1_000_000
MOST_SHOWN = 80
UNREADABLE = (OSError, ValueError, RecursionError, MemoryError)
"""The file cannot be read, or no parser can hold it: the run itself will show why."""


@dataclass(frozen=True)
class Fault:
    """Why a text is not valid Python: `file:line`, what stands there, and the parser's words."""

    place: str
    line: str
    said: str


def content(file: Path) -> bytes:
    """The file's bytes; raises OSError, and ValueError for a file of more than MOST_BYTES."""
    if file.stat().st_size > MOST_BYTES:
        raise ValueError("too long for a program that somebody wrote")
    return file.read_bytes()


def tree(text: bytes, version: tuple[int, int] | None = None) -> ast.Module:
    """The syntax tree; raises SyntaxError. Python's mere warnings are left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text, feature_version=version)


def fault(program: Path) -> Fault | None:
    """What keeps a program from being compiled, None if nothing does or nothing is certain.

    Python's grammar only grows: what this Python refuses, an older one refuses as well.
    """
    try:
        text = content(program)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<program>", "exec", dont_inherit=True)
    except SyntaxError as error:
        return fault_of(error, text, program.name)
    except UNREADABLE:
        return None
    return None


def too_new(text: bytes, name: str, version: tuple[int, int] = OLDEST) -> Fault | None:
    """What an older Python cannot read in a text that this one can, None if it can read all."""
    if version >= sys.version_info[:2]:
        return None
    try:
        tree(text, version)
    except SyntaxError as error:
        return fault_of(error, text, name)
    return None


def fault_of(error: SyntaxError, text: bytes, name: str) -> Fault:
    """The place, the line and the words of a syntax error."""
    number = error.lineno or 1
    found = text.splitlines()[number - 1 : number]
    line = b"".join(found).decode(errors="replace").strip()
    shown = line if len(line) <= MOST_SHOWN else line[: MOST_SHOWN - 1] + "…"
    return Fault(f"{name}:{number}", shown, error.msg)
