"""Whether a program is valid Python, and the hint for one that is not. Pure."""

from __future__ import annotations

import ast
import io
import sys
import token
import tokenize
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

OLDEST = (3, 11)
"""The Python of the default base image, and the oldest that this package runs on."""
MOST_BYTES = 1_000_000
MOST_SHOWN = 80
NOT_UTF8 = "the text is not in utf-8, nor in an encoding that its first lines name"
UNREADABLE = (OSError, ValueError, RecursionError, MemoryError)
"""The file cannot be read, or is too much for the parser: the run itself will show why."""


@dataclass(frozen=True)
class Fault:
    """A syntax error: its `file:line`, the text of that line, and the parser's message."""

    location: str
    line: str
    message: str


def content(file: Path) -> bytes:
    """The file's bytes; raises OSError, and ValueError for a file of more than MOST_BYTES."""
    if file.stat().st_size > MOST_BYTES:
        raise ValueError("too long for a hand-written program")
    return file.read_bytes()


def tree(text: bytes, version: tuple[int, int] | None = None) -> ast.Module:
    """The syntax tree, as this or another version of Python reads it; raises SyntaxError."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text, feature_version=version)


def fault(program: Path) -> Fault | None:
    """The syntax error of a program; None if it has none or cannot be read.

    What this Python refuses, an older one refuses as well: the grammar only grows.
    """
    try:
        text = content(program)
        if not _can_be_read(text):
            return _not_utf8(text, program.name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<program>", "exec", dont_inherit=True)
    except SyntaxError as error:
        return fault_of(error, text, program.name)
    except UNREADABLE:
        return None
    return None


def _can_be_read(text: bytes) -> bool:
    """Whether the text is in its encoding: the one that it names, else UTF-8."""
    try:
        text.decode(tokenize.detect_encoding(io.BytesIO(text).readline)[0])
    except (UnicodeDecodeError, SyntaxError):
        return False
    return True


def _not_utf8(text: bytes, name: str) -> Fault:
    """The first line that Python cannot read, in a text without a line that names its encoding."""
    lines = text.splitlines()
    number = next((n for n, line in enumerate(lines, 1) if not _is_utf8(line)), 1)
    shown = lines[number - 1].decode(errors="replace").strip() if lines else ""
    return Fault(f"{name}:{number}", shown[:MOST_SHOWN], NOT_UTF8)


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def too_new(text: bytes, name: str, version: tuple[int, int] = OLDEST) -> Fault | None:
    """The first part of a valid text that an older Python refuses; None if it accepts all."""
    if version >= sys.version_info[:2]:
        return None
    try:
        tree(text, version)
    except SyntaxError as error:
        return fault_of(error, text, name)
    return None


def fault_of(error: SyntaxError, text: bytes, name: str) -> Fault:
    """The place, line and message of a syntax error in `text`, the file called `name`."""
    number = error.lineno or 1
    raw_line = text.splitlines()[number - 1 : number]
    line = b"".join(raw_line).decode(errors="replace").strip()
    excerpt = line if len(line) <= MOST_SHOWN else line[: MOST_SHOWN - 1] + "…"
    return Fault(f"{name}:{number}", excerpt, error.msg)


MOST_LINES = 12
STARTS = (tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING,
          tokenize.COMMENT)  # fmt: skip
HINTS = {
    "Missing parentheses in call to 'print'": "write print(…), with parentheses",
    "Missing parentheses in call to 'exec'": "write exec(…), with parentheses",
    "multiple exception types must be parenthesized": "write `except X as e:`",
    "leading zeros in decimal integer literals": "write 0o644 for 0644",
    "invalid decimal literal": "write numbers without the L of Python 2",
}
"""What Python 3 says of texts of Python 2, and what to write."""


def hint(message: str, text: bytes) -> str:
    """What to do about a syntax error with this message in this text; "" if it is not certain that
    the text is Python 2's."""
    known = next((HINTS[start] for start in HINTS if message.startswith(start)), "")
    if not known or (message.startswith("invalid decimal") and b"print " not in text):
        return ""
    lines = list(dict.fromkeys(_print_statements(text))) if "print" in message else []
    shown = ", ".join(map(str, lines[:MOST_LINES]))
    more = f" and {len(lines) - MOST_LINES} more" if len(lines) > MOST_LINES else ""
    where = f" (lines {shown}{more})" if len(lines) > 1 else ""
    return f"it is written for Python 2, which is not rewritten here: {known}{where}"


def _print_statements(text: bytes) -> Iterator[int]:
    """The lines of statements that begin with `print` and go on without a parenthesis."""
    try:
        tokens = list(tokenize.tokenize(io.BytesIO(text).readline))
    except (tokenize.TokenError, SyntaxError, ValueError):
        return
    begins = True
    for this, after in pairwise(tokens):
        if begins and (this.type, this.string) == (tokenize.NAME, "print"):
            operand = after.type in (tokenize.STRING, tokenize.NAME, tokenize.NUMBER)
            if operand or after.string in (">>", "[", "{", "-", "`"):
                yield this.start[0]
        begins = this.type in STARTS or this.exact_type in (token.COLON, token.SEMI)
