"""The rule for silent tasks, and its sentence, which host and image share."""

from __future__ import annotations

import time

from trainer.contract import endings, heartbeat


def test_of_a_long_time_between_two_looks_only_a_part_counts_as_silence():
    assert heartbeat.passed(10.0, 11.0) == 1.0
    assert heartbeat.passed(10.0, 70.0) == heartbeat.LONGEST_LOOK_S


def test_a_task_is_silent_after_the_manifests_time_and_a_server_after_twice_that():
    assert not heartbeat.is_silent(10.0, 10.0)
    assert heartbeat.is_silent(10.1, 10.0)
    assert not heartbeat.is_silent(20.0, 10.0, server=True)
    assert heartbeat.is_silent(20.1, 10.0, server=True)


def test_with_0_no_task_is_ever_silent():
    assert not heartbeat.is_silent(1e9, 0.0)
    assert not heartbeat.is_silent(1e9, 0.0, server=True)


def test_the_sentences_for_a_silent_task_and_a_silent_server():
    at = time.mktime((2026, 1, 2, 3, 4, 5, 0, 0, -1))
    assert heartbeat.sentence("worker-1", 11.4, at) == (
        "worker-1 has been silent for 11 s (frozen or cut off; last heard 03:04:05)"
    )
    assert heartbeat.sentence("ps-0", 21, at, server=True) == (
        "ps-0's server has not answered for 21 s (its process runs; last answer 03:04:05)"
    )
    assert heartbeat.sentence("ps-0", 21, at, server=True, gone=True) == (
        "ps-0's server has not answered for 21 s (its process has ended; last answer 03:04:05)"
    )


def test_an_unknown_reason_is_a_failed_training():
    assert endings.kit_exit_code("a word of its own") == 5
    assert endings.kit_exit_code(endings.STALL) == 6
