"""Prepares lines of tasks' logs for the terminal. Pure."""

from __future__ import annotations

from cluster_kit.observe.noise import NATIVE
from cluster_kit.util.terminal import harmless


def visible(line: str) -> str:
    """The line as a terminal would show it at its end: a progress bar in its last state.

    "" if nothing would be visible, and for TensorFlow's own start-up lines; the saved log has all.
    """
    text = harmless(line)
    if NATIVE.match(text):
        return ""
    if "\r" in text or "\b" in text:
        text = _last_state(text)
    text = text.expandtabs()
    return "".join(c for c in text if c.isprintable()).rstrip()


def bounded(text: str, most: int) -> str:
    """The text, cut to `most` characters with `…` at the end."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _last_state(text: str) -> str:
    """The text of a line after carriage returns and backspaces have overwritten parts of it."""
    shown: list[str] = []
    cursor = 0
    for character in text:
        if character == "\r":
            cursor = 0
        elif character == "\b":
            cursor = max(0, cursor - 1)
        else:
            shown[cursor : cursor + 1] = character
            cursor += 1
    return "".join(shown)
