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


INVISIBLE = re.compile(
    "[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""Format characters that change the order of what stands around them, or are not seen at all. Those
that join letters, which some scripts need, are none of them."""


def harmless(text: str) -> str:
    """The text without escape sequences, control characters, and what `seen` leaves out."""
    return seen(_CONTROL.sub("", _SEQUENCE.sub("", text)))


def seen(text: str) -> str:
    """The text without characters that reverse its order, or that nobody sees."""
    return text if text.isascii() else INVISIBLE.sub("", text)
