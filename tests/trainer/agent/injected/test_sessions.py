"""How long sessions of the oldest style wait for threads at their end."""

from __future__ import annotations

import time

import pytest

from trainer.agent.injected import mailbox, tensorflow_patches


@pytest.mark.parametrize(
    ("given", "waited"),
    [
        ({"ignore_live_threads": True}, tensorflow_patches.GRACE_S),
        ({"ignore_live_threads": True, "stop_grace_period_secs": 120}, tensorflow_patches.GRACE_S),
        ({"ignore_live_threads": True, "stop_grace_period_secs": 60}, 60),
        ({}, 120),
    ],
)
def test_daemon_threads_get_less_time_unless_the_program_sets_it(given, waited):
    """If they may not be abandoned, a thread that takes long would become an error."""
    calls = []
    join = tensorflow_patches.less_patient(lambda self, *arguments: calls.append(arguments))
    join("the coordinator", ["a thread"], **given)
    assert calls == [(["a thread"], waited, given.get("ignore_live_threads", False))]


def test_a_session_needs_the_ps_and_its_own_task():
    tf_config = '{"cluster": {}, "task": {"type": "worker", "index": 1}}'
    filters = tensorflow_patches.own_filters(tf_config)
    assert filters == ["/job:ps", "/job:worker/task:1"]
    assert tensorflow_patches.own_filters("") == tensorflow_patches.own_filters("{}") == []


class Mailbox:
    """A chief that has initialised the model at these times."""

    def __init__(self, *times: int) -> None:
        self._times = list(times)

    def initialized_at(self) -> int:
        return self._times.pop(0) if len(self._times) > 1 else self._times[0]


def slept_s(waits: tensorflow_patches.UntilInitialized, seconds: float) -> float:
    began = time.monotonic()
    waits.sleep(seconds)
    return time.monotonic() - began


def test_a_worker_looks_as_soon_as_the_chief_has_initialised_the_model():
    assert slept_s(tensorflow_patches.UntilInitialized(Mailbox(0, 0, 7)), 20.0) < 5.0


def test_a_model_that_was_initialised_before_is_no_news():
    assert slept_s(tensorflow_patches.UntilInitialized(Mailbox(7)), 0.2) >= 0.2


def test_a_chief_that_initialises_during_a_look_is_noticed_after_it():
    waits = tensorflow_patches.UntilInitialized(Mailbox(0, 0, 0, 7))
    waits.sleep(0.01)
    assert slept_s(waits, 20.0) < 5.0


def test_a_look_that_takes_long_is_repeated_seldom():
    waits = tensorflow_patches.UntilInitialized(Mailbox(0))
    waits.sleep(0.01)
    time.sleep(0.1)  # the look
    assert slept_s(waits, 0.01) >= 0.1 * tensorflow_patches.LOOK_SHARE


def test_a_program_whose_mark_the_leader_cannot_see_waits_for_no_one(tmp_path, monkeypatch):
    """Because the supervisor would never let it begin."""
    monkeypatch.setenv(mailbox.VARIABLE, str(tmp_path))
    monkeypatch.setenv("CLUSTER_KIT_PROGRESS", str(tmp_path / "gone" / "worker-0.jsonl"))
    mailbox.wait_for_peers()
