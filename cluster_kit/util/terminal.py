"""Text of programs without what would move, colour or ring a terminal. Pure."""

from __future__ import annotations

import re

_SEQUENCE = re.compile(
    r"\x1b(\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b\n]*(\x07|\x1b\\)?|[ -/]*[0-~])"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
"""Escape sequences: colours, cursor movements, titles and what else is sent to a terminal."""
_CONTROL = re.compile(r"[\x00-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""Control characters, but for the newline, the tab, and those of progress bars: CR and BS."""


def harmless(text: str) -> str:
    """The text without escape sequences and control characters."""
    return _CONTROL.sub("", _SEQUENCE.sub("", text))
