"""Makes programs' text harmless: no commands for a terminal or a CI runner. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

_SEQUENCE = re.compile(
    r"\x1b(\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b\n]*(\x07|\x1b\\)?|[ -/]*[0-~])"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
"""Escape sequences: colours, cursor movements, titles and other commands for a terminal."""
_CONTROL = re.compile(r"[\x00-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""Control characters, except newline, tab, and those of progress bars (CR and BS)."""


INVISIBLE = re.compile(
    "[\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""Characters that reorder the text around them, or are invisible, such as Hangul's fillers.
Characters that join letters are not included, since some scripts need them."""


def harmless(text: str) -> str:
    """The text without escape sequences, control characters, and what `seen` leaves out."""
    if text.isprintable():  # as most lines of a log
        return seen(text)
    return seen(_CONTROL.sub("", _SEQUENCE.sub("", text)))


def seen(text: str) -> str:
    """The text without characters that reverse its order, and without invisible characters."""
    return text if text.isascii() else INVISIBLE.sub("", text)


SYSTEMS = ("GITHUB_ACTIONS", "GITLAB_CI", "TF_BUILD", "TEAMCITY_VERSION")
"""Variables that these systems set."""
KEPT = 40
"""Characters of a line that can change the meaning of the text after them."""
# Control and format characters: GitHub's runner compares text by language rules, which ignore them.
_IGNORED = (
    "\\x00-\\x08\\x0e-\\x1f\\x7f-\\x84\\x86-\\x9f\\xad\\u034f\\u0600-\\u0605\\u061c\\u06dd\\u070f\\u08e2"
    "\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u206f\\u3164"
    "\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\uffff\\U000110bd\\U000110cd\\U00013430-\\U0001343f"
    "\\U0001bca0-\\U0001bca3\\U0001d173-\\U0001d17a\\U000e0000-\\U000e0fff"
)
_NOTHING = re.compile(f"[{_IGNORED}]+")
_BREAK = re.compile(r"[\r\n]")
# Some of the ignored characters are letters, such as Hangul's fillers. Each must match in one way
# only: otherwise a line of thirty of them takes minutes.
_MARKER = re.compile(
    rf"^[\s{_IGNORED}]*:[{_IGNORED}]*(?=:)"
    rf"|#[{_IGNORED}]*+#(?:[{_IGNORED}]*+[^\W{_IGNORED}]){{0,20}}+[{_IGNORED}]*+(?=\[)"
    r"|section_(?:start|end)(?=:)"
)


def is_ci(environment: Mapping[str, str]) -> bool:
    """Whether the output is read by a CI runner that executes commands in it."""
    return any(environment.get(name) for name in SYSTEMS)


class Guard:
    """Takes the text of a stream in pieces, as they are written, and returns them without commands.

    A piece may begin or end within a marker.
    """

    def __init__(self) -> None:
        self._line = ""
        """The visible part of the current line, as far as it has been written."""

    def __call__(self, text: str) -> str:
        parts, begin = [], 0
        for match in _BREAK.finditer(text):
            parts += [self._guarded(text[begin : match.start()]), match.group()]
            self._line, begin = "", match.end()
        return "".join([*parts, self._guarded(text[begin:])])

    def _guarded(self, part: str) -> str:
        before, line = len(self._line), self._line + part
        at = [match.end() for match in _MARKER.finditer(line) if match.end() >= before]
        pieces = [line[i:j] for i, j in zip([before, *at], [*at, len(line)], strict=True)]
        safe = " ".join(pieces)
        line = _NOTHING.sub("", self._line + safe)
        # Leading blanks do not matter; no other beginning can be that of a command.
        self._line = line if len(line := line.lstrip()) <= KEPT else f"-{line[-KEPT:]}"
        return safe


def in_json(text: str) -> str:
    """A JSON text of the same value without such markers, which `Guard` would change."""
    text = re.sub(r"##(?=\w{0,20}\[)", r"#\\u0023", text)
    return re.sub(r"section_(start|end):", r"section_\1\\u003a", text)


def counted(number: int, noun: str) -> str:
    """`1 run`, `2 runs`, `0 runs`: for nouns whose plural ends in -s."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def figure(value: object) -> str:
    """A metric as text; None is one that JSON does not have, of a training that diverged."""
    if value is None:
        return "nan or infinite"
    return rounded(value) if isinstance(value, float) else str(value)


def rounded(value: float) -> str:
    """A number with four digits, and with more of what they would round up to 1: a score of 0.99997
    is not a perfect one."""
    shown = f"{value:.4g}"
    for digits in (5, 6, 7, 8):
        if value < 1 and shown == "1":
            shown = f"{value:.{digits}g}"
    return shown


def duration(seconds: float, digits: int = 1) -> str:
    """A length of time in words: `16.5 s`, and from 100 s on `2 min 5 s`, `1 h 12 min`.

    Args:
        digits: after the point, below 100 s.
    """
    if round(seconds, digits) < 100:
        return f"{seconds:.{digits}f} s"
    whole = round(seconds)
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {whole % 60} s"
