"""Finds lines of a job's output that CI runners take for commands, by a separate implementation of
their rules."""

from __future__ import annotations

import re
import sys
import unicodedata

IGNORED = {
    chr(code)
    for code in range(sys.maxunicode + 1)
    if unicodedata.category(chr(code)) in ("Cc", "Cf") and not chr(code).isspace()
} | {chr(code) for code in range(0xFE00, 0xFE10)}
"""Characters that a culture-sensitive comparison ignores."""


def commands(output: str) -> list[str]:
    """Returns the lines that are a command for one of the runners."""
    return [line for line in re.split(r"\r\n|\r|\n", output) if is_command(line)] + gitlab(output)


def is_command(line: str) -> bool:
    """Returns whether GitHub takes a line for a command: `::` after blanks and again later, or
    `##[` anywhere and `]` later.

    Azure's and TeamCity's commands are like the second form, with a word before the bracket.
    """
    seen = "".join(character for character in line if character not in IGNORED)
    newer = seen.lstrip()
    if newer.startswith("::") and "::" in newer[2:]:
        return True
    marks = [seen.find(mark) for mark in ("##[", "##vso[", "##teamcity[")]
    return any(at >= 0 and "]" in seen[at:] for at in marks)


def gitlab(output: str) -> list[str]:
    """Returns the markers of sections, which may be anywhere in a line."""
    marker = r"section_(?:start|end):\d+:[\w.-]+(?:\[[^\]]*\])?\r\x1b\[0K"
    return re.findall(marker, output)
