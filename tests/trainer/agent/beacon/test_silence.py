"""Detection of silent tasks, by a clock that stands still while the observer does not run."""

from __future__ import annotations

import pytest

from trainer.agent.beacon.silence import Silence
from trainer.contract.times import BEAT_S


def passed(silence: Silence, start: float, seconds: int) -> float:
    for second in range(1, seconds + 1):
        silence.look(start + second)
    return start + seconds


def test_a_task_without_messages_is_silent_and_one_with_messages_is_not():
    silence = Silence(100.0)
    silence.heard("ps-0")
    silence.heard("worker-0")
    now = passed(silence, 100.0, 8)
    silence.heard("worker-0")
    passed(silence, now, 3)
    assert silence.longer_than(10) == {"ps-0": pytest.approx(11)}
    assert silence.longer_than(2) == {"ps-0": pytest.approx(11), "worker-0": pytest.approx(3)}


def test_the_silent_tasks_follow_the_rule_of_the_contract():
    silence = Silence(0.0)
    silence.heard("ps-0")
    passed(silence, 0.0, 11)
    assert silence.silent(10.0).keys() == {"ps-0"}
    assert silence.silent(10.0, server=True) == silence.silent(11.0) == silence.silent(0.0) == {}


def test_a_pause_of_the_observer_makes_no_task_silent():
    silence = Silence(0.0)
    silence.heard("ps-0")
    silence.look(600.0)
    assert silence.longer_than(2 * BEAT_S) == {}
    passed(silence, 600.0, 10)
    assert silence.longer_than(10).keys() == {"ps-0"}


def test_the_message_that_ends_a_silence_gives_its_length():
    silence = Silence(0.0)
    assert silence.heard("ps-0") == 0
    passed(silence, 0.0, 7)
    assert silence.heard("ps-0") == pytest.approx(7)
    assert silence.heard("ps-0") == 0


def test_a_task_that_has_left_is_not_silent():
    silence = Silence(0.0)
    silence.heard("ps-0")
    silence.forget("ps-0")
    silence.forget("never-there")
    passed(silence, 0.0, 60)
    assert silence.longer_than(0) == {}
