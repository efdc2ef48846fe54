"""A container's line as a terminal would finally show it, without log noise."""

from __future__ import annotations

import pytest

from cluster_kit.show.view import bounded, visible
from tests.unit.show.samples import KERAS_BAR, NATIVE_NOISE, TF_KERAS_BAR, WORDS


def test_the_samples_are_as_long_as_real_lines() -> None:
    assert len(KERAS_BAR) > 7000 < len(TF_KERAS_BAR)


def test_a_keras_bar_becomes_its_last_state() -> None:
    assert visible(KERAS_BAR) == (
        "60/60 ━━━━━━━━━━━━━━━━━━━━ 12s 200ms/step - accuracy: 0.6000 - loss: 1.3000"
    )


def test_a_tf_keras_bar_becomes_its_last_state() -> None:
    assert visible(TF_KERAS_BAR) == (
        "60/60 [==============================] - 12s 198ms/step - loss: 1.3000"
    )


def test_a_character_that_docker_has_split_leaves_nothing_behind_a_bar() -> None:
    assert visible("94%|##\ufffd\ufffd\ufffd|\r94%|###|") == "94%|###|"
    assert visible("a\ufffd\ufffdb") == "a\ufffd\ufffdb"


@pytest.mark.parametrize("line", NATIVE_NOISE)
def test_tensorflows_own_lines_are_left_out(line: str) -> None:
    assert visible(line) == ""
    assert visible(f"\x1b[33m{line}\x1b[0m") == ""


def test_what_a_program_logs_by_absl_is_shown() -> None:
    line = "I1124 19:59:43.838015 140600459059904 absl_raise.py:19] step 0 v [1. 1. 1. 1.]"
    assert visible(line) == line
    assert visible("I1124 19:59:43.838015 30 port.cc:153] oneDNN custom operations are on") == ""


@pytest.mark.parametrize("line", WORDS)
def test_other_text_is_unchanged(line: str) -> None:
    assert visible(line) == line


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("10%\r20%\r100%", "100%"),
        ("100%|██████████| 5/5\r", "100%|██████████| 5/5"),
        ("downloading\rdone", "doneloading"),  # as on a terminal: nothing is erased
        ("downloading\rdone       ", "done"),
        ("abc\b\b\b\b\bxyz", "xyz"),
        ("\r\r\r", ""),
        ("   ", ""),
        ("\x1b[2K\x1b[1A", ""),
        ("\x1b]0;title\x07words", "words"),
        ("a\tb", "a       b"),
        ("bell\x07 and \x00nothing", "bell and nothing"),
        ("[bold]markup[/bold] :smile:", "[bold]markup[/bold] :smile:"),
        ("  indented", "  indented"),
    ],
)
def test_the_result_equals_what_a_terminal_would_show(line: str, left: str) -> None:
    assert visible(line) == left


def test_a_line_over_the_limit_is_truncated_with_a_mark() -> None:
    assert bounded("abcde", 5) == "abcde"
    assert bounded("abcdef", 5) == "abcd…"
