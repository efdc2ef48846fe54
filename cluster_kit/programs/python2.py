"""Tells Python 2 from a syntax error of another kind, and where else it has such lines. Pure."""

from __future__ import annotations

import io
import token
import tokenize
from collections.abc import Iterator
from itertools import pairwise

MOST_LINES = 12
STARTS = (tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING,
          tokenize.COMMENT)  # fmt: skip
CURES = {
    "Missing parentheses in call to 'print'": "write print(…), with parentheses",
    "Missing parentheses in call to 'exec'": "write exec(…), with parentheses",
    "multiple exception types must be parenthesized": "write `except X as e:`",
    "leading zeros in decimal integer literals": "write 0o644 for 0644",
    "invalid decimal literal": "write numbers without the L of Python 2",
}
"""What Python 3 says of texts of Python 2, and what to write."""


def cure(message: str, text: bytes) -> str:
    """What to do about a syntax error with this message in this text; "" if it is not certain that
    the text is Python 2's."""
    known = next((CURES[start] for start in CURES if message.startswith(start)), "")
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
