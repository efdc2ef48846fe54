"""Logs of containers on other machines, read by repeated queries."""

from __future__ import annotations

from cluster_kit.platforms.engine import said_after

FIRST, SECOND = "2026-11-22T12:00:01.5Z one", "2026-11-22T12:00:02.5Z two"
NOON = 1795348800.0


def test_lines_after_a_time() -> None:
    assert said_after([FIRST, SECOND], None) == [FIRST, SECOND]
    assert said_after([FIRST, SECOND], NOON + 1.5) == [SECOND]


def test_an_engines_message_about_an_unavailable_log_is_left_out() -> None:
    lost = "Error grabbing logs: rpc error: code = Unknown desc = warning: incomplete log stream."
    assert said_after([FIRST, lost, "", SECOND], NOON) == [FIRST, SECOND]
    assert said_after([FIRST, lost], None) == [FIRST]
