"""A line of a task's log as a person should see it while the run goes on. Pure."""

from __future__ import annotations

import re

from cluster_kit.observe.noise import NATIVE

_ESCAPE = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?|[ -/]*[0-~])")
"""Colours, cursor movements and titles for a terminal."""


def visible(line: str) -> str:
    """What a terminal would show of the line at its end: of a progress bar its last state.

    Returns "" where there is nothing to see, and for TensorFlow's own start-up lines; the saved
    log keeps all.
    """
    text = _ESCAPE.sub("", line)
    if NATIVE.match(text):
        return ""
    if "\r" in text or "\b" in text:
        text = _last_state(text)
    text = text.expandtabs()
    return "".join(c for c in text if c.isprintable()).rstrip()


def bounded(text: str, most: int) -> str:
    """The text, or its beginning with `…`: `most` characters at the most."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _last_state(text: str) -> str:
    """What stands on the line when all has been written over what stood there before."""
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
