"""What is printed is no command for the runner of a CI system, whatever a task says. Pure.

Runners read commands in a job's output: GitHub's `::name::` at the beginning of a line and
`##[name]` anywhere in one, Azure's `##vso[name]`, TeamCity's `##teamcity[name]`, GitLab's
`section_start:`. By them a task could mask words, fold the log, set outputs, or stop the commands
of others. A space within the marker prevents that; the kit prints no such commands itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

SYSTEMS = ("GITHUB_ACTIONS", "GITLAB_CI", "TF_BUILD", "TEAMCITY_VERSION")
"""Variables that these systems set."""
KEPT = 40
"""Characters of a line that can matter to what follows them."""
# Control and format characters: GitHub's runner compares as a language does, which ignores them.
_IGNORED = (
    "\\x00-\\x08\\x0e-\\x1f\\x7f-\\x84\\x86-\\x9f\\xad\\u034f\\u0600-\\u0605\\u061c\\u06dd\\u070f\\u08e2"
    "\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u206f\\u3164"
    "\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\uffff\\U000110bd\\U000110cd\\U00013430-\\U0001343f"
    "\\U0001bca0-\\U0001bca3\\U0001d173-\\U0001d17a\\U000e0000-\\U000e0fff"
)
_NOTHING = re.compile(f"[{_IGNORED}]+")
_BREAK = re.compile(r"[\r\n]")
_MARKER = re.compile(
    rf"^[\s{_IGNORED}]*:[{_IGNORED}]*(?=:)"
    rf"|#[{_IGNORED}]*#(?:[{_IGNORED}]*\w){{0,20}}[{_IGNORED}]*(?=\[)"
    r"|section_(?:start|end)(?=:)"
)


def is_ci(environment: Mapping[str, str]) -> bool:
    """Whether a runner that takes commands reads what is printed."""
    return any(environment.get(name) for name in SYSTEMS)


class Guard:
    """Takes the text of a stream in pieces, as they are written, and returns them without commands.

    A piece may begin or end within a marker.
    """

    def __init__(self) -> None:
        self._line = ""
        """What matters of the current line, as far as it was written."""

    def __call__(self, text: str) -> str:
        parts, begin = [], 0
        for found in _BREAK.finditer(text):
            parts += [self._guarded(text[begin : found.start()]), found.group()]
            self._line, begin = "", found.end()
        return "".join([*parts, self._guarded(text[begin:])])

    def _guarded(self, part: str) -> str:
        before, line = len(self._line), self._line + part
        at = [match.end() for match in _MARKER.finditer(line) if match.end() >= before]
        pieces = [line[i:j] for i, j in zip([before, *at], [*at, len(line)], strict=True)]
        safe = " ".join(pieces)
        line = _NOTHING.sub("", self._line + safe)
        # Blanks before anything else are as good as none; other beginnings are none of a command.
        self._line = line if len(line := line.lstrip()) <= KEPT else f"-{line[-KEPT:]}"
        return safe


def in_json(text: str) -> str:
    """A JSON text of the same value without such markers, which `Guard` would change."""
    text = re.sub(r"##(?=\w{0,20}\[)", r"#\\u0023", text)
    return re.sub(r"section_(start|end):", r"section_\1\\u003a", text)
