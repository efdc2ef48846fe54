"""Output of programs cannot control the terminal of its reader."""

from __future__ import annotations

import re

import pytest

from cluster_kit.util.terminal import INVISIBLE, figure, harmless
from tests.make import ROOT


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("\x1b[2Jwiped", "wiped"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;a title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPq#0\x1b\\sixel", "sixel"),
        ("\x9b2Jwiped", "wiped"),
        ("\x1bcreset", "reset"),
        ("bell\x07 nul\x00 del\x7f", "bell nul del"),
        ("10%\r20%\b\tsüß …\n", "10%\r20%\b\tsüß …\n"),
        ("cut off \x1b", "cut off "),
        ("cut off \x1b[3", "cut off 3"),
        ("gpj\u202e.exe \u2066a\u2069 \u200f\u061cb\u200b\ufeff", "gpj.exe a b"),
        ("a\u3164b \u115f\u1160c\uffa0", "ab c"),
        ("ask\U000e0041 so\u00adft", "ask soft"),
        ("\u0646\u0645\u06cc\u200c\u062f\u0627\u0646\u0645 \U0001f469\u200d\U0001f4bb",) * 2,
        ("an open title \x1b]0;x\nnext line", "an open title \nnext line"),
    ],
)
def test_sequences_and_control_characters_are_removed(text: str, left: str) -> None:
    assert harmless(text) == left


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.99997, "0.99997"), (0.9999996, "0.9999996"), (1.0, "1"), (1.00001, "1"),
     (0.98765, "0.9877"), (1 - 1e-12, "1"), (3, "3"), (None, "nan or infinite")],
)  # fmt: skip
def test_a_score_just_below_1_is_not_shown_as_perfect(value: float | None, text: str) -> None:
    assert figure(value) == text


def test_pages_remove_the_same_characters() -> None:
    script = (ROOT / "templates" / "report" / "dom.js").read_text()
    (written,) = re.findall(r"^const INVISIBLE = /(.*)/gu;$", script, re.MULTILINE)
    escapes = re.sub(r"\\u\{?([0-9a-f]{4,5})\}?", lambda found: chr(int(found[1], 16)), written)
    assert escapes == INVISIBLE.pattern
