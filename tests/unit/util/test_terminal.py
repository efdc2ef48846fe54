"""What programs print cannot steer the terminal of whoever reads it."""

from __future__ import annotations

import pytest

from cluster_kit.util.terminal import harmless


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
        ("an open title \x1b]0;x\nnext line", "an open title \nnext line"),
    ],
)
def test_sequences_and_control_characters_are_left_out(text: str, left: str) -> None:
    assert harmless(text) == left
